// Timers, sockets, servers, watchers and child handles that were opened in this process and are still open, by asynchronous hooks.
import { createHook, type HookCallbacks } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** Watches what is opened in this process. */
export interface ResourceWatch {
  /** One line for each thing that is still open, with the place that opened it. */
  left(): string[]
  /** Records nothing that is opened from now on; closings are still seen. */
  freeze(): void
  stop(): void
}

interface Opened {
  readonly type: string
  readonly resource: object
  /** Its `stack` is formatted only when a leak is told. */
  readonly trace: { stack?: string }
}

const KINDS: Readonly<Record<string, string>> = {
  Timeout: 'timer',
  TCPSERVERWRAP: 'listening server',
  TCPWRAP: 'socket',
  PIPESERVERWRAP: 'listening pipe',
  PIPEWRAP: 'pipe',
  UDPWRAP: 'datagram socket',
  PROCESSWRAP: 'child process handle',
  FSEVENTWRAP: 'file watcher',
  STATWATCHER: 'file watcher',
  WORKER: 'worker thread',
}
const FRAMES_MAX = 16
const TIMER_FRAMES =
  /\(?node:(?:internal\/async_hooks|internal\/timers|timers|timers\/promises|async_hooks):|\/leaks\/resources\.ts/
/** What the test runner itself opens. */
const RUNNER_FRAME = /\/node_modules\/(?:vitest|@vitest\/[^/]+|vite|tinypool|tinyrainbow)\//

/** Starts recording. */
export function watchResources(): ResourceWatch {
  const open = new Map<number, Opened>()
  let isRecording = true
  const callbacks: HookCallbacks & { trackPromises: boolean } = {
    // Promises are far too many to be followed, and a promise is no leak.
    trackPromises: false,
    init(id, type, _trigger, resource) {
      if (!isRecording || KINDS[type] === undefined) return
      open.set(id, { type, resource, trace: takeTrace() })
    },
    destroy(id) {
      open.delete(id)
    },
  }
  const hook = createHook(callbacks).enable()
  const stopServers = traceServers()
  return {
    left: () => [...open.values()].flatMap(describe),
    freeze: () => {
      isRecording = false
    },
    stop() {
      hook.disable()
      stopServers()
    },
  }
}

function takeTrace(): { stack?: string } {
  const trace: { stack?: string } = {}
  const limitBefore = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES_MAX
  Error.captureStackTrace(trace)
  Error.stackTraceLimit = limitBefore
  return trace
}

/** Where `listen` was called, by the server's handle, which is made later, when nobody is on the stack any more. */
const listenTraces = new WeakMap<object, { stack?: string }>()

function traceServers(): () => void {
  const pending = new WeakMap<object, { stack?: string }>()
  const begin = (message: unknown): void => void pending.set((message as { server: object }).server, takeTrace())
  const end = (message: unknown): void => {
    const server = (message as { server: { _handle?: object } }).server
    const trace = pending.get(server)
    if (server._handle !== undefined && server._handle !== null && trace !== undefined)
      listenTraces.set(server._handle, trace)
  }
  subscribe('tracing:net.server.listen:asyncStart', begin)
  subscribe('tracing:net.server.listen:asyncEnd', end)
  return () => {
    unsubscribe('tracing:net.server.listen:asyncStart', begin)
    unsubscribe('tracing:net.server.listen:asyncEnd', end)
  }
}

/** One line, or none for what is the runner's or Node's own and ends by itself. */
function describe({ type, resource, trace }: Opened): string[] {
  const frames = ((listenTraces.get(resource) ?? trace).stack ?? '').split('\n').slice(1)
  const callers = frames.filter((frame) => !TIMER_FRAMES.test(frame))
  const caller = callers.find((frame) => !frame.includes('node:') && frame.includes(':'))
  if (caller !== undefined && RUNNER_FRAME.test(caller)) return []
  if (type === 'Timeout' && isOwnTimerOfNode(resource, callers[0])) return []
  const fd = (resource as { fd?: number }).fd
  if (fd !== undefined && fd >= 0 && fd <= 2) return []
  return [`${KINDS[type]}${detailOf(type, resource)}${caller === undefined ? '' : `, opened ${placeOf(caller)}`}`]
}

/** Node's caches and clients keep unreferenced timers that hold nothing open (the HTTP date, fetch's clock). */
function isOwnTimerOfNode(timer: object, caller: string | undefined): boolean {
  const hasRef = (timer as { hasRef?(): boolean }).hasRef?.() ?? true
  return !hasRef && (caller === undefined || caller.includes('node:'))
}

function detailOf(type: string, resource: object): string {
  if (type === 'Timeout') {
    const timer = resource as { _idleTimeout?: number; _repeat?: number | null }
    return ` (${typeof timer._repeat === 'number' ? 'every' : 'after'} ${timer._idleTimeout ?? '?'} ms)`
  }
  if (type === 'PROCESSWRAP') return ` (pid ${(resource as { pid?: number }).pid ?? '?'})`
  const handle = resource as { getsockname?(into: object): number; getpeername?(into: object): number }
  const local = addressOf(handle.getsockname?.bind(handle))
  const remote = addressOf(handle.getpeername?.bind(handle))
  return `${local === '' ? '' : ` ${local}`}${remote === '' ? '' : ` to ${remote}`}`
}

function addressOf(ask: ((into: object) => number) | undefined): string {
  const into: { address?: string; port?: number } = {}
  try {
    ask?.(into)
  } catch {
    return ''
  }
  return into.port === undefined ? '' : `${into.address}:${into.port}`
}

function placeOf(frame: string): string {
  return frame.trim().replace('file://', '').replace(`${process.cwd()}/`, '')
}
