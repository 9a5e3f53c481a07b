"""What machines have that boot for a test: Docker, a driver, the toolkit, as lines of shell."""

from first_boots import Machine

VERSION = 'case " $* " in *" version "*) echo 28.3.1 ;; esac'
DOCKER = """\
case $1 in
    version)
        [ ! -e "$STATE/docker-is-down" ] || exit 1
        cat "$STATE/docker-version" 2>/dev/null || echo 28.3.1 ;;
    import) cat >"$STATE/image.tar" ;;
    run)
        [ ! -e "$STATE/run-says" ] || { cat "$STATE/run-says" >&2; exit 125; }
        echo "GPUs $(cat "$STATE/inside")"
        [ ! -e "$STATE/uvm-inside" ] || echo uvm ;;
    pull) exit 1 ;;
esac
"""
SMI = """\
[ ! -e "$STATE/smi-says" ] || { cat "$STATE/smi-says"; exit 9; }
case $1 in
    -L)
        n=0
        while [ "$n" -lt "$(cat "$STATE/seen")" ]; do
            echo "GPU $n: NVIDIA A10G (UUID: GPU-$n)"
            n=$((n + 1))
        done ;;
    --query-gpu*) echo 580.82.07 ;;
esac
"""
CTK = """\
case "$1 $2" in
    "cdi generate") echo kind >"${3#--output=}" ;;
    "cdi list") [ -e "$STATE/no-cdi" ] || echo nvidia.com/gpu=all ;;
    "runtime configure")
        echo "{\\"runtimes\\": \\"$*\\"}" >"$CLOUDWHALE_ROOT/etc/docker/daemon.json" ;;
    "--version "*) echo "NVIDIA Container Toolkit CLI version 1.20.0" ;;
esac
"""


def has_docker(machine: Machine, version: str = "28.3.1") -> None:
    machine.fake("docker", DOCKER)
    machine.fake("dockerd", 'rm -f "$STATE/docker-is-down"')
    machine.fake("service", "exit 1")
    (machine.folder / "docker-version").write_text(version)


def has_gpus(machine: Machine, wanted: int = 2, there: int = 2, inside: int = 2) -> None:
    """Give it GPUs: as device files, in its driver's eyes, and in a container."""
    machine.with_gpus(wanted, there)
    machine.fake("nvidia-smi", SMI)
    machine.fake("modprobe")
    (machine.folder / "seen").write_text(str(there))
    (machine.folder / "inside").write_text(str(inside))


def is_ubuntu(machine: Machine, kernel: str = "6.8.0-1040-aws") -> None:
    (machine.root / "etc/os-release").write_text('ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.3 LTS"\n')
    machine.fake("uname", f"echo {kernel}", told=False)
    machine.fake("modprobe")
