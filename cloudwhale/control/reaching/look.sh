# Looks at a host and prints one JSON document; changes nothing. WANTED, HOME_DIR, NODE and TOKEN
# are set in front of it.
set -u
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
python=
for name in "python$WANTED" python3.14 python3.13 python3.12 python3.11 python3; do
    if command -v "$name" >/dev/null 2>&1 &&
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        python=$(command -v "$name")
        break
    fi
done
if [ -z "$python" ]; then
    found=$(python3 --version 2>/dev/null || echo none)
    printf '{"python": "", "version": "%s"}\n' "$found"
    exit 0
fi
export HOME_DIR NODE TOKEN
exec "$python" - <<'PYTHON'
import fcntl, importlib.util, json, os, platform, pwd, shutil, subprocess, sys, time


def said(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10)
        return done.returncode, done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return 127, ""


def held(path):
    try:
        with open(path, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
home = os.environ["HOME_DIR"] or os.path.join(data, "cloudwhale")
home = os.path.abspath(os.path.expanduser(home))
host = platform.node().split(".")[0]
node = os.environ["NODE"] or host
nearest = home
while not os.path.isdir(nearest):
    nearest = os.path.dirname(nearest)
code, gpus = said("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
_, running = said("systemctl", "--user", "is-system-running")
agents = os.path.join(home, "agents")
token = os.environ["TOKEN"]
print(json.dumps({
    "python": sys.executable,
    "version": "%d.%d" % sys.version_info[:2],
    "system": platform.system(),
    "machine": platform.machine(),
    "libc": "-".join(platform.libc_ver()),
    "host": host,
    "user": pwd.getpwuid(os.getuid()).pw_name,
    "home": home,
    "writable": os.access(nearest, os.W_OK),
    "disk_gib": shutil.disk_usage(nearest).free / 2**30,
    "now": time.time(),
    "gpus": gpus.splitlines() if code == 0 else [],
    "docker": os.access("/var/run/docker.sock", os.R_OK | os.W_OK),
    "systemd": running in ("running", "degraded", "starting"),
    "venv": importlib.util.find_spec("venv") is not None,
    "pip": importlib.util.find_spec("ensurepip") is not None,
    "installed": sorted(os.listdir(agents)) if os.path.isdir(agents) else [],
    "working": held(os.path.join(home, "nodes", node, "agent.lock")),
    "meets": bool(token) and os.path.exists(token),
}))
PYTHON
