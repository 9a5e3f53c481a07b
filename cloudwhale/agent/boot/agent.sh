#!/bin/sh
# Starts the agent, for good, and calls the machine's first end off once its watchdog is armed.
# shellcheck source-path=SCRIPTDIR source=words.sh
. "$(dirname "$0")/words.sh"

bundle=$CLOUDWHALE_BUNDLE
place=${CLOUDWHALE_ENVIRONMENT%/*}
home="$root/var/lib/cloudwhale"
log="$root/var/log/cloudwhale-agent.log"
UNIT=cloudwhale-agent.service

fits() {  # PYTHON: whether the archive has compiled packages for it; sets `number`
    number=$("$1" -c 'import sys; print("%d%d" % sys.version_info[:2])') &&
        [ -d "$bundle/lib-cp$number" ]
}

python=
for one in python3 python3.11 python3.12 python3.13; do
    if has "$one" && fits "$one"; then
        python=$(command -v "$one")
        break
    fi
done
[ -n "$python" ] || give_up "this image has $(python3 -V 2>&1), and the agent's archive is for" \
    "$(cd "$bundle" && echo lib-cp*): choose another \`image\`"
lease=$("$CLOUDWHALE_STORE" lease) || give_up "the lease of this machine cannot be read"

mkdir -p "$home" "${log%/*}"
chmod 755 "$home"  # each job's own user passes through it
cat >"$place/agent.new" <<END
#!/bin/sh
# Written by the first boot: the agent of this machine.
set -a
. '$CLOUDWHALE_ENVIRONMENT'
set +a
export PYTHONPATH='$bundle/lib:$bundle/lib-cp$number'
exec '$python' -P -m cloudwhale.agent --mailbox='$CLOUDWHALE_MAILBOX' --home='$home' \\
    --node='$CLOUDWHALE_NODE' --door='${CLOUDWHALE_DOOR:-}' --rented --lease='$lease' --power-off='shutdown -h now' \\
    --notices='$CLOUDWHALE_NOTICES' --own-users ${CLOUDWHALE_AGENT_WORDS:-}
END
mv "$place/agent.new" "$place/agent"

if has_systemd; then
    mkdir -p "$root/etc/systemd/system"
    cat >"$root/etc/systemd/system/$UNIT" <<END
[Unit]
Description=The agent of cloudwhale
After=network-online.target docker.service
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=/bin/sh $place/agent
Environment=HOME=/root
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2
KillMode=process
TasksMax=infinity
OOMScoreAdjust=-900
StandardOutput=append:$log
StandardError=append:$log

[Install]
WantedBy=multi-user.target
END
    systemctl daemon-reload
    systemctl enable "$UNIT"
    systemctl start --no-block "$UNIT" || give_up "systemd does not start the agent"
else
    # shellcheck disable=SC2016 # the loop's own variables
    setsid sh -c 'while :; do
        sh "$1"
        case $? in 0 | 2) exit ;; esac  # it has left, or its name is another agent'\''s
        sleep 5
    done' cloudwhale-agent "$place/agent" >>"$log" 2>&1 </dev/null &
    loop=$!
fi

armed="$home/nodes/$CLOUDWHALE_NODE/watchdog.json"
wait_for 90 test -s "$armed" || {
    # The loop leads a session, and so a group, of its own; it may have ended.
    [ -z "${loop:-}" ] || kill -- "-$loop" 2>/dev/null || :
    give_up "the agent has not armed its watchdog: $(tail -n 1 "$log" 2>/dev/null)"
}
# Else it would come in the middle of a job.
again 3 shutdown -c || give_up "the first end of this machine cannot be called off"
say "the agent watches over the lease $lease, with $("$python" -V)"
