# Says whether the agent of NODE works; HOME_DIR and SYSTEMD are set in front of it.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
if [ "$SYSTEMD" = yes ]; then
    state=$(systemctl --user is-active cloudwhale-agent.service)
    case "$state" in active | activating | reloading) echo lives ;; esac
else
    pid=$(cat "$HOME_DIR/nodes/$NODE/agent.lock" 2>/dev/null)
    [ -n "$pid" ] && grep -q cloudwhale "/proc/$pid/cmdline" 2>/dev/null && echo lives
fi
exit 0
