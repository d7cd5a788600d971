// Runs a small program to its end and takes what it prints: for helpers that make headers, not for servers.
import { WireError } from './errors.ts'
import { nodePlatform, type Platform } from './platform.ts'
import { type ProcessSpec, spawnProcess } from './spawner.ts'

/** What to run, and its limits. An abort of `signal` ends the program. */
export interface RunOptions extends ProcessSpec {
  platform?: Platform
  /** Default 65,536. */
  stdoutBytesMax?: number
  /** Default 10,000. */
  timeoutMs?: number
  signal?: AbortSignal
}

/** How the program ended and what it printed. */
export interface RunResult {
  exitCode?: number
  signal?: string
  stdout: Buffer
  /** The end of stderr, cleaned of control characters. */
  stderrTail: string
}

const STDOUT_BYTES_MAX = 65_536
const TIMEOUT_MS = 10_000

/**
 * Starts the program with the environment of any other child, ends its input at once, and resolves when it and everything it started is gone.
 * A bad exit code is a result, not an error. No message quotes what it printed on stdout.
 * @throws {WireError} `spawn-failed`; `too-large`, `timed-out` or `cancelled`, after which nothing of it is running.
 */
export async function runCommand(options: RunOptions): Promise<RunResult> {
  const { platform = nodePlatform, stdoutBytesMax = STDOUT_BYTES_MAX, timeoutMs = TIMEOUT_MS, signal } = options
  const cancelled = (): WireError => new WireError('cancelled', `"${options.command}" was cancelled`)
  if (isAborted(signal)) throw cancelled()
  const child = await spawnProcess(platform, options)
  const parts: Buffer[] = []
  let length = 0
  let failure: WireError | undefined
  const stop = (error: WireError): void => {
    failure ??= error
    void child.close('tell')
  }
  child.onOutput((chunk) => {
    length += chunk.length
    if (length <= stdoutBytesMax) parts.push(chunk)
    else stop(new WireError('too-large', `"${options.command}" printed more than ${stdoutBytesMax} bytes`))
  })
  child.stdin.end()
  const timer = platform.setTimer(
    () =>
      stop(new WireError('timed-out', `"${options.command}" did not end within ${timeoutMs} ms`, { limit: 'total' })),
    timeoutMs,
  )
  const onAbort = (): void => stop(cancelled())
  signal?.addEventListener('abort', onAbort, { once: true })
  if (isAborted(signal)) onAbort() // while the process was started
  const end = await child.ended
  await child.gone
  platform.clearTimer(timer)
  signal?.removeEventListener('abort', onAbort)
  if (failure !== undefined) throw failure
  return { ...end, stdout: Buffer.concat(parts), stderrTail: child.stderr.text }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}
