// A server as a child process: newline-delimited JSON over its pipes.
import type { Call } from './call.ts'
import type { Channel, ChannelContext, Receiver } from './channel.ts'
import { type CloseOutcome, WireError } from './errors.ts'
import { LineReader } from './line-reader.ts'
import type { Platform, TimerHandle } from './platform.ts'
import { type ProcessEnd, type SpawnedProcess, spawnProcess } from './spawner.ts'
import type { StdioTarget } from './target.ts'

/**
 * When queued messages are written. `tick`: at the end of this callback, best for one caller. `turn`: after all input of this turn of the
 * event loop, so that the requests of many HTTP clients leave together; it costs a lone caller about 10 us.
 */
export type WriteBurst = 'tick' | 'turn'

/** Answers that a server has asked for and does not read. */
const UNREAD_ANSWER_CHARS_MAX = 64 * 1024 * 1024
/** A pipe that breaks is nearly always the first sign of an end; the end itself says more. */
const BROKEN_PIPE_GRACE_MS = 1_000

/** The pipes of one server process. */
export class StdioChannel implements Channel {
  readonly multiplexed = true
  readonly #platform: Platform
  readonly #process: SpawnedProcess
  readonly #receiver: () => Receiver
  readonly #reader: LineReader
  readonly #burst: WriteBurst
  #outgoing = ''
  /** How much of `#outgoing` are answers to the server. */
  #answerChars = 0
  #flushing = false
  #blocked = false
  /** Calls are queued in the order of their ids, so one number says which have left. */
  #queuedId = 0
  #writtenId = 0
  #brokenTimer: TimerHandle | undefined
  #closing: Promise<void> | undefined

  /** @throws {WireError} `spawn-failed` */
  static async open(target: StdioTarget, context: ChannelContext, burst: WriteBurst): Promise<StdioChannel> {
    return new StdioChannel(await spawnProcess(context.platform, target), context, burst)
  }

  private constructor(
    child: SpawnedProcess,
    { platform, messageBytesMax, receiver, onFirstOutput }: ChannelContext,
    burst: WriteBurst,
  ) {
    this.#platform = platform
    this.#process = child
    this.#receiver = receiver
    this.#burst = burst
    this.#reader = new LineReader(
      {
        line: (bytes, start, end) => receiver().receive(bytes, start, end),
        oversized: (head, tail, length) => receiver().receiveOversized(head, tail, length),
      },
      messageBytesMax,
    )
    let hasSpoken = false
    child.onOutput((chunk) => {
      if (!hasSpoken) {
        hasSpoken = true
        onFirstOutput?.()
      }
      // While it is being closed a server is still read, so that it can end, but nobody waits for what it says.
      if (this.#closing === undefined) this.#reader.push(chunk)
    })
    child.stdin.on('drain', () => {
      this.#blocked = false
      this.#flush()
    })
    child.onBroken(() => {
      this.#brokenTimer = platform.setTimer(
        () => this.#lose('The server closed its pipes'),
        BROKEN_PIPE_GRACE_MS,
        'background',
      )
    })
    void child.ended.then((end) => this.#ended(end))
  }

  get pid(): number {
    return this.#process.pid
  }

  get stderrTail(): string {
    return this.#process.stderr.text
  }

  get lastStderrLine(): string | undefined {
    return this.#process.stderr.lastLine
  }

  /** Messages of one burst leave in one write: under load one system call carries many calls. */
  send(text: string, call: Call | undefined): void {
    if (call !== undefined) this.#queuedId = call.id
    else if (this.#blocked && this.#refuses(text)) return
    this.#outgoing += `${text}\n`
    if (this.#flushing || this.#blocked) return
    this.#flushing = true
    if (this.#burst === 'tick')
      process.nextTick(flush, this) // after all microtasks, so that a burst of awaiting callers is caught whole
    else setImmediate(flush, this)
  }

  /** A server that floods us with requests and reads no answer must not fill our memory. */
  #refuses(text: string): boolean {
    this.#answerChars += text.length
    if (this.#answerChars <= UNREAD_ANSWER_CHARS_MAX) return false
    this.#lose('The server sends requests and does not read the answers')
    return true
  }

  #flush(): void {
    this.#flushing = false
    if (this.#outgoing === '' || this.#blocked) return
    const text = this.#outgoing
    this.#outgoing = ''
    this.#answerChars = 0
    this.#writtenId = this.#queuedId
    const { stdin } = this.#process
    if (!stdin.destroyed && !stdin.writableEnded) this.#blocked = !stdin.write(text)
  }
  static flush(channel: StdioChannel): void {
    channel.#flush()
  }

  hasSent(call: Call): boolean {
    return call.id <= this.#writtenId
  }

  /** A request that has not left is taken out of the queue: then the server never hears of it. */
  cancel(call: Call, reason: string): void {
    if (!this.hasSent(call) && this.#withdraw(call)) return
    this.send(
      `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${call.id},"reason":${JSON.stringify(reason)}}}`,
      undefined,
    )
  }

  #withdraw({ id }: Call): boolean {
    const beginning = `{"jsonrpc":"2.0","id":${id},"method":`
    const at = this.#outgoing.startsWith(beginning) ? 0 : this.#outgoing.indexOf(`\n${beginning}`) + 1
    if (at === 0 && !this.#outgoing.startsWith(beginning)) return false
    this.#outgoing = this.#outgoing.slice(0, at) + this.#outgoing.slice(this.#outgoing.indexOf('\n', at) + 1)
    return true
  }

  #ended({ exitCode, signal }: ProcessEnd): void {
    if (this.#closing === undefined) this.#reader.flush()
    const how = signal === undefined ? `with code ${exitCode}` : `by ${signal}`
    this.#end({
      cause: 'process-exited',
      message: `The server process ended ${how}`,
      ...(exitCode === undefined ? {} : { exitCode }),
      ...(signal === undefined ? {} : { signal }),
    })
  }

  #lose(message: string): void {
    this.#end({ cause: 'connection-lost', message })
    void this.close()
  }

  #end(outcome: CloseOutcome): void {
    this.#platform.clearTimer(this.#brokenTimer)
    const { exitCode, signal } = outcome
    const { text, lastLine } = this.#process.stderr
    const message =
      lastLine === undefined || outcome.cause === 'local'
        ? outcome.message
        : `${outcome.message} (last stderr line: ${lastLine})`
    const error = new WireError('closed', message, {
      stderrTail: text,
      ...(exitCode === undefined ? {} : { exitCode }),
      ...(signal === undefined ? {} : { signal }),
    })
    this.#receiver().end(error, { ...outcome, message })
  }

  /** Calls in flight fail at once; the process gets the time that the spawner gives. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#flush()
    this.#end({ cause: 'local', message: 'The session was closed' })
    await this.#process.close()
  }
}

const flush = StdioChannel.flush
