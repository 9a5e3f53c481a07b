# shellcheck shell=sh
# How Docker's daemon is set, started and asked; read by the phases that do.
# shellcheck source-path=SCRIPTDIR source=words.sh
. "$(dirname "$0")/words.sh"

docker_answers() { timeout 20 docker version --format '{{.Server.Version}}'; }

docker_runs() { pid=$(cat "$root/var/run/docker.pid" 2>/dev/null) && [ -d "/proc/$pid" ]; }

docker_version() { docker_answers 2>/dev/null | tail -n 1; }

set_daemon() {  # KEY VALUE: into a list of daemon.json; 3 where it stands there already
    mkdir -p "$root/etc/docker"
    python3 - "$root/etc/docker/daemon.json" "$@" <<'END'
import json, os, sys

path, key, value = sys.argv[1:]
said = {}
if os.path.exists(path) and os.path.getsize(path):
    with open(path) as file:
        said = json.load(file)
name = value.partition("=")[0] + "="
listed = [one for one in said.get(key, []) if not one.startswith(name)] + [value]
if said.get(key) == listed:
    sys.exit(3)
said[key] = listed
with open(path + ".new", "w") as file:
    json.dump(said, file, indent=4)
os.replace(path + ".new", path)
END
}

start_docker() {
    docker_log="$root/var/log/dockerd.log"
    if has_systemd; then
        systemctl reset-failed docker
        systemctl enable docker
        systemctl start docker
    elif ! service docker start; then
        setsid dockerd >>"$docker_log" 2>&1 </dev/null &
    fi
}

restart_docker() {
    if has_systemd; then
        systemctl reset-failed docker
        systemctl restart docker
        return
    fi
    service docker stop
    pid=$(cat "$root/var/run/docker.pid" 2>/dev/null) && kill "$pid" &&
        wait_for 20 eval "! kill -0 $pid"  # its file says so until it has ended: none starts then
    start_docker
}

docker_says() {  # why it does not start, by its own last words
    if has_systemd; then
        journalctl -u docker -n 20 -o cat --no-pager
    else
        tail -n 20 "$root/var/log/dockerd.log" "$root/var/log/docker.log" 2>/dev/null
    fi | grep -i 'fail\|error\|invalid' | tail -n 1
}
