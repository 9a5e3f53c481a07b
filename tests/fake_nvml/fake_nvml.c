/* A stand-in for libnvidia-ml.so.1: GPUs as a text file describes them, read again on each call.
 *
 * FAKE_NVML_STATE names the file; its lines:
 *   error CODE                  every call answers this (999: unknown, as after a daemon reload)
 *   gpu NUMBER UUID TOTAL_MIB USED_MIB SM_PERCENT FLAGS NAME...
 *                               FLAGS: `-`, or of `lost` (fell off the bus), `mig`, `nosm`
 *   process NUMBER PID MIB      memory that a process holds on a GPU; MIB `-`: the driver cannot say
 *   link NUMBER NUMBER          two GPUs that NVLink joins
 * A file that is missing is a library without a driver. Prototypes are those of NVIDIA's NVML
 * reference manual, as far as they are needed here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15, MOST = 16
};
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFULL
#define MIB (1024ULL * 1024ULL)

typedef struct { unsigned number, sm; unsigned long long total, used; char uuid[96], flags[64], name[96]; } Gpu;
typedef struct { unsigned number, pid; unsigned long long bytes; } Process;
typedef struct { unsigned one, other; } Link;
typedef struct { int error; unsigned gpus, processes, links; Gpu gpu[MOST]; Process process[256]; Link link[64]; } State;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId; } ProcessInfo;

static int read_state(State *state)
{
    const char *path = getenv("FAKE_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512], amount[32];
    memset(state, 0, sizeof *state);
    if (!file)
        return DRIVER_NOT_LOADED;
    while (fgets(line, sizeof line, file)) {
        Gpu *gpu = &state->gpu[state->gpus];
        Process *process = &state->process[state->processes];
        Link *link = &state->link[state->links];
        if (sscanf(line, "error %d", &state->error) == 1)
            continue;
        if (state->gpus < MOST && sscanf(line, "gpu %u %95s %llu %llu %u %63s %95[^\n]", &gpu->number, gpu->uuid,
                   &gpu->total, &gpu->used, &gpu->sm, gpu->flags, gpu->name) == 7)
            state->gpus++;
        else if (state->processes < 256 && sscanf(line, "process %u %u %31s", &process->number, &process->pid, amount) == 3) {
            process->bytes = amount[0] == '-' ? NOT_AVAILABLE : strtoull(amount, NULL, 10) * MIB;
            state->processes++;
        } else if (state->links < 64 && sscanf(line, "link %u %u", &link->one, &link->other) == 2)
            state->links++;
    }
    fclose(file);
    return state->error;
}

/* A handle is the number of a GPU and one more; it outlives the order of the lines. */
static int find(State *state, const void *handle, Gpu **gpu)
{
    int error = read_state(state);
    if (error)
        return error;
    for (unsigned i = 0; i < state->gpus; i++)
        if (state->gpu[i].number + 1 == (unsigned)(size_t)handle) {
            *gpu = &state->gpu[i];
            return strstr((*gpu)->flags, "lost") ? GPU_IS_LOST : SUCCESS;
        }
    return GPU_IS_LOST;
}

static int copy(char *to, unsigned room, const char *text)
{
    if (strlen(text) + 1 > room)
        return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { State state; (void)flags; return read_state(&state); }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "as the fake library was told"; }

int nvmlSystemGetDriverVersion(char *version, unsigned room)
{
    State state;
    int error = read_state(&state);
    return error ? error : copy(version, room, "550.00.fake");
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    State state;
    *version = 12040;
    return read_state(&state);
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    State state;
    int error = read_state(&state);
    *count = state.gpus;
    return error;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    State state;
    int error = read_state(&state);
    if (error)
        return error;
    if (index >= state.gpus)
        return INVALID_ARGUMENT;
    *handle = (void *)(size_t)(state.gpu[index].number + 1);
    return strstr(state.gpu[index].flags, "lost") ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
    State state;
    int error = read_state(&state);
    for (unsigned i = 0; !error && i < state.gpus; i++)
        if (!strcmp(state.gpu[i].uuid, uuid))
            return nvmlDeviceGetHandleByIndex_v2(i, handle);
    return error ? error : NOT_FOUND;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned room)
{
    State state; Gpu *gpu;
    int error = find(&state, handle, &gpu);
    return error ? error : copy(name, room, gpu->name);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned room)
{
    State state; Gpu *gpu;
    int error = find(&state, handle, &gpu);
    return error ? error : copy(uuid, room, gpu->uuid);
}

int nvmlDeviceGetIndex(void *handle, unsigned *index)
{
    State state; Gpu *gpu;
    int error = find(&state, handle, &gpu);
    *index = error ? 0 : gpu->number;
    return error;
}

int nvmlDeviceGetMinorNumber(void *handle, unsigned *minor) { return nvmlDeviceGetIndex(handle, minor); }

int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory)
{
    State state; Gpu *gpu;
    int error = find(&state, handle, &gpu);
    if (error)
        return error;
    memory->total = gpu->total * MIB;
    memory->used = gpu->used * MIB;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *handle, Utilization *rates)
{
    State state; Gpu *gpu;
    int error = find(&state, handle, &gpu);
    if (error)
        return error;
    rates->gpu = gpu->sm;
    rates->memory = 0;
    return strstr(gpu->flags, "nosm") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending)
{
    State state; Gpu *gpu;
    int error = find(&state, handle, &gpu);
    if (error)
        return error;
    *current = *pending = strstr(gpu->flags, "mig") != NULL;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, ProcessInfo *infos)
{
    State state; Gpu *gpu;
    unsigned room = infos ? *count : 0, found = 0;
    int error = find(&state, handle, &gpu);
    if (error)
        return error;
    for (unsigned i = 0; i < state.processes; i++) {
        if (state.process[i].number != gpu->number)
            continue;
        if (found < room) {
            ProcessInfo info = { state.process[i].pid, state.process[i].bytes, ~0u, ~0u };
            infos[found] = info;
        }
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetP2PStatus(void *one, void *other, int index, int *status)
{
    State state; Gpu *gpu, *second;
    int error = find(&state, one, &gpu);
    unsigned first = error ? 0 : gpu->number;
    if (!error)
        error = find(&state, other, &second);
    if (error)
        return error;
    *status = 1; /* not supported */
    for (unsigned i = 0; index == 2 && i < state.links; i++) {
        Link *link = &state.link[i];
        if ((link->one == first && link->other == second->number) || (link->other == first && link->one == second->number))
            *status = 0;
    }
    return SUCCESS;
}
