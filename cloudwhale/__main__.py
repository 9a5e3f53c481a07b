"""Makes `python -m cloudwhale` the same as `cloudwhale`."""

from cloudwhale.cli import main

if __name__ == "__main__":
    main()
