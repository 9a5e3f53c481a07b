# Installs a package that lies in FILE into DIR; PYTHON, KIND and SHA are set in front of it.
set -eu
umask 077
"$PYTHON" -c '
import hashlib, sys
with open(sys.argv[1], "rb") as file:
    if hashlib.sha256(file.read()).hexdigest() != sys.argv[2]:
        sys.exit("what arrived is not what was sent")
' "$FILE" "$SHA"
rm -rf "$DIR.new"
if [ "$KIND" = bundle ]; then
    "$PYTHON" -m venv --without-pip "$DIR.new"
    "$DIR.new/bin/python" -c '
import sys, sysconfig, tarfile
with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sysconfig.get_path("purelib"), filter="data")
' "$FILE"
else
    "$PYTHON" -m venv "$DIR.new"
    "$DIR.new/bin/python" -m pip install --quiet --disable-pip-version-check "$FILE"
fi
# It must be able to start before anything is replaced by it.
"$DIR.new/bin/python" -P -m cloudwhale.agent --help >/dev/null
rm -rf "$DIR"
mv "$DIR.new" "$DIR"
rm -f "$FILE"
