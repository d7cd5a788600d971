// A server as a child process: newline-delimited JSON over its pipes. Owns the process group and nothing else.
import type { Call } from './call.ts'
import type { Channel, ChannelContext } from './channel.ts'
import { WireError } from './errors.ts'
import { LineReader } from './line-reader.ts'
import type { ChildProcessPort } from './platform.ts'
import type { StdioTarget } from './target.ts'

/**
 * When queued messages are written. `tick`: at the end of this callback, best for one caller. `turn`: after all input of this turn of the
 * event loop, so that the requests of many HTTP clients leave together; it costs a lone caller about 10 us.
 */
export type WriteBurst = 'tick' | 'turn'

const STDERR_BYTES_KEPT = 16 * 1024
const CLOSE_STEP_MS = 2_000
const isWindows = process.platform === 'win32'

/** Groups to kill if the host exits without closing; one listener for all. */
const groups = new Set<number>()
process.on('exit', () => {
  for (const pid of groups) signalGroup(pid, 'SIGKILL')
})

export class StdioChannel implements Channel {
  readonly multiplexed = true
  readonly #child: ChildProcessPort
  readonly #exited: Promise<void>
  #stderr: Buffer[] = []
  #stderrBytes = 0
  #outgoing = ''
  #flushing = false
  #blocked = false
  #closing: Promise<void> | undefined
  #queuedId = 0
  #writtenId = 0

  readonly #burst: WriteBurst

  constructor(target: StdioTarget, { platform, messageBytesMax, receiver: peer }: ChannelContext, burst: WriteBurst) {
    this.#burst = burst
    this.#child = platform.spawn({
      command: target.command,
      args: target.args ?? [],
      env: { ...(platform.env as Record<string, string>), ...target.env },
      ...(target.cwd === undefined ? {} : { cwd: target.cwd }),
    })
    const { pid, stdin, stdout, stderr } = this.#child
    if (pid !== undefined) groups.add(pid)
    const reader = new LineReader(
      {
        line: (bytes, start, end) => peer().receive(bytes, start, end),
        oversized: (head, tail, length) => peer().receiveOversized(head, tail, length),
      },
      messageBytesMax,
    )
    stdout.on('data', (chunk: Buffer) => reader.push(chunk))
    stderr.on('data', (chunk: Buffer) => this.#keepStderr(chunk))
    stdin.on('error', () => {}) // EPIPE: 'close' tells more
    stdin.on('drain', () => {
      this.#blocked = false
      this.#flush()
    })
    this.#exited = new Promise((resolve) => {
      this.#child.once('error', (cause) => {
        peer().end(new WireError('spawn-failed', `Could not start "${target.command}": ${cause.message}`, { cause }))
        resolve()
      })
      // 'close' comes after the last output has been read, so an answer written just before the exit still counts.
      this.#child.once('close', (code, signal) => {
        reader.flush()
        peer().end(new WireError('closed', `The server process ended (${signal ?? `code ${code}`})`))
        resolve()
      })
      this.#child.once('exit', () => {
        if (pid !== undefined) groups.delete(pid)
      })
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** The last 16 KiB that the server wrote to stderr. */
  get stderrTail(): string {
    return Buffer.concat(this.#stderr).subarray(-STDERR_BYTES_KEPT).toString('utf8')
  }

  /** Messages of one burst leave in one write: under load one system call carries many calls. */
  send(text: string, call: Call | undefined): void {
    if (call !== undefined) this.#queuedId = call.id
    this.#outgoing += text + '\n'
    if (this.#flushing || this.#blocked) return
    this.#flushing = true
    if (this.#burst === 'tick')
      process.nextTick(flush, this) // after all microtasks, so that a burst of awaiting callers is caught whole
    else setImmediate(flush, this)
  }

  #flush(): void {
    this.#flushing = false
    if (this.#outgoing === '' || this.#blocked) return
    const text = this.#outgoing
    this.#outgoing = ''
    this.#writtenId = this.#queuedId
    if (!this.#child.stdin.destroyed) this.#blocked = !this.#child.stdin.write(text)
  }
  static flush(channel: StdioChannel): void {
    channel.#flush()
  }

  hasSent(call: Call): boolean {
    return call.id <= this.#writtenId
  }

  cancel(call: Call, reason: string): void {
    this.send(
      `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${call.id},"reason":${JSON.stringify(reason)}}}`,
      undefined,
    )
  }

  #keepStderr(chunk: Buffer): void {
    this.#stderr.push(chunk)
    this.#stderrBytes += chunk.length
    while (this.#stderrBytes - (this.#stderr[0]?.length ?? 0) > STDERR_BYTES_KEPT)
      this.#stderrBytes -= this.#stderr.shift()?.length ?? 0
  }

  /** End of input, then SIGTERM, then SIGKILL to the whole group, 2 s apart. Resolves when the process is gone. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    const { pid } = this.#child
    this.#flush()
    this.#child.stdin.end()
    if (pid === undefined) return this.#exited
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await settledWithin(this.#exited, CLOSE_STEP_MS)) break
      signalGroup(pid, signal)
    }
    signalGroup(pid, 'SIGKILL') // grandchildren that outlived their parent
    this.#child.stdout.destroy()
    this.#child.stderr.destroy()
    await this.#exited
  }
}

const flush = StdioChannel.flush

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(isWindows ? pid : -pid, signal)
  } catch {
    /* gone already */
  }
}

function settledWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    void promise.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
