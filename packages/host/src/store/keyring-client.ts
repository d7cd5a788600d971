// The host's side of the keyring program: starts it when it is needed, ends it when it is idle, and kills it when it does not answer.
import type { Readable, Writable } from 'node:stream'
import type * as Url from 'node:url'
import type { KeyringAnswer, KeyringOrder, KeyringOutcome } from './keyring-protocol.ts'
import type { StorePlatform } from './platform.ts'

/** A started program; the platform's child processes are such. */
export interface KeyringChild {
  readonly pid?: number | undefined
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  once(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'close', listener: (code: number | null) => void): unknown
}

/** What a keyring needs of the platform. */
export interface KeyringPlatform extends StorePlatform {
  readonly env: Readonly<Record<string, string | undefined>>
  spawn(spec: { command: string; args: readonly string[]; env: Readonly<Record<string, string>> }): KeyringChild
  kill(pid: number, signal: 'SIGKILL' | 0, to: 'process' | 'group'): boolean
}

/** What a {@link KeyringClient} is made of. */
export interface KeyringClientOptions {
  readonly platform: KeyringPlatform
  readonly service: string
  /** How long an idle program is kept, in milliseconds. Default 3,000. */
  readonly idleMs?: number
}

const IDLE_MS = 3_000
/** All that a keyring of some system needs to be found, and nothing that could change what the program does. */
const VARIABLES = [
  'HOME',
  'USER',
  'LOGNAME',
  'PATH',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'DBUS_SESSION_BUS_ADDRESS',
  'XDG_RUNTIME_DIR',
  'XDG_DATA_HOME',
  'XDG_CURRENT_DESKTOP',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XAUTHORITY',
  // Windows
  'SystemRoot',
  'SYSTEMROOT',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
  'TEMP',
  'TMP',
] as const

interface Running {
  readonly child: KeyringChild
  readonly waiting: Map<number, (outcome: KeyringOutcome) => void>
  readonly closed: Promise<void>
}

/** Speaks with one keyring program at a time. */
export class KeyringClient {
  readonly #options: KeyringClientOptions
  #running: Running | undefined
  #idleTimer: object | undefined
  #count = 0

  constructor(options: KeyringClientOptions) {
    this.#options = options
  }

  /** What came of the order, also when nothing did: this never rejects. After `timeoutMs` the program is killed, with all that it was asked. */
  ask(order: KeyringOrder, timeoutMs: number): Promise<KeyringOutcome> {
    const { platform, service } = this.#options
    platform.clearTimer(this.#idleTimer)
    const running = (this.#running ??= this.#start())
    const id = ++this.#count
    return new Promise((resolve) => {
      const timer = platform.setTimer(() => {
        const detail = `the keyring did not answer within ${timeoutMs} ms`
        this.#end(running, { kind: 'failed', because: 'no-answer', detail })
      }, timeoutMs)
      running.waiting.set(id, (outcome) => {
        platform.clearTimer(timer)
        running.waiting.delete(id)
        if (running.waiting.size === 0) this.#rest(running)
        resolve(outcome)
      })
      running.child.stdin.write(`${JSON.stringify({ id, service, order })}\n`)
    })
  }

  /** Ends the program. Another one is started if it is asked again. Resolves when it has gone. */
  async close(): Promise<void> {
    const running = this.#running
    if (running === undefined) return // Whoever waits for its end must not be ended by having nothing else to do.
    ;(running.child as { ref?: () => void }).ref?.()
    this.#end(running, { kind: 'failed', because: 'no-answer', detail: 'the keyring was closed' })
    await running.closed
  }

  #start(): Running {
    const { platform } = this.#options
    const env = keyringEnvironment(platform)
    const child = platform.spawn({ command: process.execPath, args: [programPath()], env })
    const waiting: Running['waiting'] = new Map()
    let tellClosed: () => void = () => {}
    const closed = new Promise<void>((resolve) => {
      tellClosed = resolve
    })
    const running: Running = { child, waiting, closed }
    const ended = (detail: string): void => {
      this.#end(running, { kind: 'failed', because: 'refused', detail })
      tellClosed()
    }
    child.once('error', (error) => ended(`the keyring program could not be started (${error.message})`))
    child.once('close', () => ended('the keyring program ended'))
    child.stdin.on('error', () => {}) // its end says more
    child.stderr.resume()
    readLines(child.stdout, (line) => {
      const answer = readAnswer(line)
      if (answer !== undefined) waiting.get(answer.id)?.(answer.outcome)
    })
    // An idle program keeps no command from ending; who waits for an answer has a timer.
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) (handle as { unref?: () => void }).unref?.()
    return running
  }

  #rest(running: Running): void {
    if (this.#running !== running) return
    const { platform, idleMs = IDLE_MS } = this.#options
    this.#idleTimer = platform.setTimer(
      () => {
        if (this.#running === running) this.#running = undefined
        running.child.stdin.end()
      },
      idleMs,
      'background',
    )
  }

  #end(running: Running, outcome: KeyringOutcome): void {
    const { platform } = this.#options
    if (this.#running === running) {
      this.#running = undefined
      platform.clearTimer(this.#idleTimer)
    }
    running.child.stdin.end()
    if (running.child.pid !== undefined && outcome.kind === 'failed' && outcome.because === 'no-answer')
      platform.kill(running.child.pid, 'SIGKILL', 'group')
    for (const settle of [...running.waiting.values()]) settle(outcome)
  }
}

/** The environment of what speaks with the keyring. */
export function keyringEnvironment({ env, os }: KeyringPlatform): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of VARIABLES) {
    const value = env[name]
    if (value !== undefined) kept[name] = value
  }
  const { XDG_RUNTIME_DIR: runtime, DBUS_SESSION_BUS_ADDRESS: address } = kept
  // Half of the programs look there by themselves, and the other half would find no bus.
  if (os === 'linux' && address === undefined && runtime !== undefined)
    kept['DBUS_SESSION_BUS_ADDRESS'] = `unix:path=${runtime}/bus`
  return kept
}

/** Undefined for what a library of the system has printed by itself. */
function readAnswer(line: string): KeyringAnswer | undefined {
  try {
    return JSON.parse(line) as KeyringAnswer
  } catch {
    return undefined
  }
}

/** Each whole line of a stream. */
function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('error', () => {})
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
}

/** A neighbour, in the sources and in the pack. */
function programPath(): string {
  const { fileURLToPath } = process.getBuiltinModule('node:url') as typeof Url
  const isSource = import.meta.url.endsWith('.ts')
  return fileURLToPath(
    isSource ? new URL('./keyring-program.ts', import.meta.url) : new URL('./keyring-program.js', import.meta.url),
  )
}
