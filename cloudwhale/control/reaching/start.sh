# Starts the agent of NODE from DIR, in place of one that works already. HOME_DIR, SYSTEMD and UNIT
# are set in front of it, and the agent's words by `set --`.
set -eu
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
place="$HOME_DIR/nodes/$NODE"
settings="${XDG_CONFIG_HOME:-$HOME/.config}"
mkdir -p "$place"
# Whose lock is held, and by a process of ours that is seen here: a number that was left behind by an
# agent long gone may be anybody's now.
lives() {
    [ -n "$pid" ] && grep -q cloudwhale "/proc/$pid/cmdline" 2>/dev/null &&
        "$DIR/bin/python" -c '
import fcntl, sys
with open(sys.argv[1]) as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        sys.exit(1)
    except BlockingIOError:
        sys.exit(0)
' "$place/agent.lock"
}
pid=$(cat "$place/agent.lock" 2>/dev/null || true)
# Killed, not asked: then its jobs run on under their shims, and the next agent takes them up.
if lives; then
    kill -KILL "$pid" || true
    tries=0
    while lives && [ "$tries" -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
fi
if [ "$SYSTEMD" = yes ]; then
    folder="$settings/systemd/user"
    mkdir -p "$folder"
    printf '%s' "$UNIT" >"$folder/cloudwhale-agent.service.new"
    mv "$folder/cloudwhale-agent.service.new" "$folder/cloudwhale-agent.service"
    systemctl --user daemon-reload
    systemctl --user --quiet enable cloudwhale-agent.service
    systemctl --user reset-failed cloudwhale-agent.service 2>/dev/null || true
    systemctl --user restart cloudwhale-agent.service
    # Without it, the agent would go when the user logs out.
    loginctl enable-linger >/dev/null 2>&1 || echo "no-linger"
else
    # Credentials of a bucket, for example; the unit reads the same file.
    if [ -f "$settings/cloudwhale/agent.env" ]; then
        set -a
        . "$settings/cloudwhale/agent.env"
        set +a
    fi
    cd /
    setsid nohup "$DIR/bin/python" -P -m cloudwhale.agent "$@" \
        >>"$place/agent.log" 2>&1 </dev/null &
fi
