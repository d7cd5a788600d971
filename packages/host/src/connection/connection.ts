// One server: the state machine of `state.ts`, plus the effects it asks for.
import { cleanLine, HostError, type JsonObject, redact, untilAborted } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { HostEvent, ServerStatus } from '../events/index.ts'
import type { Authorization, Introduction, ProtocolSettings, ServerSession } from '../protocol/index.ts'
import { Attempt } from './attempt.ts'
import type { CatalogSink } from './catalog-sink.ts'
import { classifyFailure, failureFacts } from './classify.ts'
import type { CredentialKey } from './identity.ts'
import { logEvent } from './server-log.ts'
import { type ConnectionEffect, type ConnectionEvent, type ConnectionState, transition } from './state.ts'
import { statusOf } from './status.ts'

/** What a connection is made of. */
export interface ConnectionOptions {
  readonly definition: ServerDefinition
  readonly settings: ProtocolSettings
  readonly authorization?: Authorization | undefined
  readonly sink: CatalogSink
  /** How it introduces itself and who answers its questions, over what the settings say. */
  readonly introduction?: Introduction | undefined
  /** Is a sign-in stored for this server? Asked when an authorization was refused; default: there is one if it was used. */
  readonly signIn?: (() => 'none' | 'stored') | undefined
  /** What a live session speaks with now, where it looks after its sign-in itself. */
  readonly liveCredentials?: (() => CredentialKey | undefined) | undefined
  /** Why it cannot be started: every start fails with this, and nothing is opened. */
  readonly refusal?: HostError | undefined
  readonly emit: (event: HostEvent) => void
  /** `dormant` unless the server is never to be started. */
  readonly initial: ConnectionState
}

/** How waiting for a server ended. */
export type ReadyOutcome =
  | { readonly kind: 'ready'; readonly session: ServerSession }
  | { readonly kind: 'failed'; readonly error: HostError }

/** Longest quotation of noise, in characters. */
const NOISE_CHARS_MAX = 300

/** Our handle on one server through its states. It starts nothing by itself: somebody has to need it. */
export class ServerConnection implements AsyncDisposable {
  readonly definition: ServerDefinition
  readonly #options: ConnectionOptions
  #state: ConnectionState
  #attempt: Attempt | undefined
  #ended: Promise<void> = Promise.resolve()
  #settled: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined
  /** The last words of the attempt that failed. */
  #stderrTail = ''
  #noiseCount = 0
  #capabilities: JsonObject | undefined
  #secrets: readonly string[] = []

  constructor(options: ConnectionOptions) {
    this.definition = options.definition
    this.#options = options
    this.#state = options.initial
  }

  get state(): ConnectionState {
    return this.#state
  }

  get isStarting(): boolean {
    return this.#state.kind === 'starting' || this.#state.kind === 'installing'
  }

  /** The live session of a ready server. */
  get session(): ServerSession | undefined {
    return this.#state.kind === 'ready' ? this.#attempt?.session : undefined
  }

  /** Capabilities of the server as it told them last: there from the handshake on, also if nothing could be listed, and gone when a start begins. */
  get capabilities(): JsonObject | undefined {
    return this.#capabilities
  }

  /** Failures in a row; 0 for a server that is well. */
  get failureCount(): number {
    const state = this.#state
    if (state.kind === 'failed') return state.failures
    return 'failuresBefore' in state ? state.failuresBefore : 0
  }

  /** The stored sign-in that the live session speaks with; undefined when there is no session, or it looks after none itself. */
  get liveCredentials(): CredentialKey | undefined {
    return this.session === undefined ? undefined : this.#options.liveCredentials?.()
  }

  /** What is known right now. Looking starts nothing. */
  get status(): ServerStatus {
    const session = this.#attempt?.session
    const { definition, sink } = this.#options
    return statusOf({
      definition,
      state: this.#state,
      session,
      sink,
      stderrTail: session?.stderrTail || this.#stderrTail,
      noiseCount: session?.noiseCount || this.#noiseCount,
      secrets: this.#secrets,
    })
  }

  /** Somebody needs the server: a dormant one starts, a failed one starts again if its time has come. */
  need(): void {
    this.#dispatch({ kind: 'needed', atMs: this.#nowMs })
  }

  /** The next start waits for something that must be over first, such as the end of the connection that this one replaces. */
  startAfter(before: Promise<void>): void {
    this.#ended = Promise.all([this.#ended, before.catch(() => {})]).then(() => {})
  }

  /** Ends a start that is under way; a ready or dormant connection is left as it is. */
  cancelStart(): void {
    const reason = {
      code: 'CANCELLED',
      message: 'The start was cancelled; it begins again when the server is next needed',
    } as const
    this.#dispatch({ kind: 'cancel', atMs: this.#nowMs, reason })
  }

  /** The server refused credentials that it had accepted before. */
  credentialsRefused(failure: HostError): void {
    const { as, reason } = this.#classify(failure)
    this.#dispatch({ kind: 'lost', atMs: this.#nowMs, as, reason })
  }

  /** Resolves when no start is under way. @throws {HostError} `CANCELLED` on abort, which stops the waiting only. */
  whenSettled(signal?: AbortSignal): Promise<void> {
    return this.#settled === undefined ? Promise.resolve() : untilAborted(this.#settled.promise, signal)
  }

  /**
   * Needs the server, and waits until it is ready or has failed. Never rejects: an abort is an outcome too (`CANCELLED`), and stops the waiting only.
   * A server that waits for its next try is not waited for: its failure is the outcome.
   */
  async whenReady(signal?: AbortSignal): Promise<ReadyOutcome> {
    this.need()
    try {
      while (this.isStarting) await this.whenSettled(signal)
    } catch (error) {
      return { kind: 'failed', error: HostError.is(error) ? error : this.#internal(error) }
    }
    const { session } = this
    return session === undefined ? { kind: 'failed', error: this.#notReady() } : { kind: 'ready', session }
  }

  /** Why there is no session now. */
  #notReady(): HostError {
    const { name } = this.definition
    const { reason } = this.#state as {
      readonly reason?: { readonly code: HostError['code']; readonly message: string }
    }
    const { code, message } = reason ?? { code: 'SERVER_NOT_READY', message: `Server "${name}" is not connected` }
    return new HostError(code, message, { details: { server: name } })
  }

  #internal(cause: unknown): HostError {
    return new HostError('INTERNAL', `Server "${this.definition.name}": ${String(cause)}`, { cause })
  }

  /** Ends everything. Resolves when nothing is left of it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#dispatch({ kind: 'release', atMs: this.#nowMs })
    await this.#ended
  }

  get #nowMs(): number {
    return this.#options.settings.platform.dateMs()
  }

  #dispatch(event: ConnectionEvent): void {
    const next = transition(this.#state, event)
    this.#state = next.state
    if (this.isStarting) this.#settled ??= promiseWithResolve()
    for (const effect of next.effects) this.#perform(effect)
    if (this.isStarting) return
    this.#settled?.resolve()
    this.#settled = undefined
  }

  #perform(effect: ConnectionEffect): void {
    switch (effect) {
      case 'begin-attempt':
        this.#begin()
        break
      case 'end-attempt':
        this.#end()
        break
      case 'report':
        this.#options.emit({ kind: 'server.state-changed', status: this.status })
        break
    }
  }

  #begin(): void {
    this.#capabilities = undefined
    this.#stderrTail = ''
    this.#noiseCount = 0
    const { definition, settings, authorization, sink } = this.#options
    const mine = new Attempt(
      {
        definition,
        settings,
        authorization,
        sink,
        refusal: this.#options.refusal,
        introduction: this.#options.introduction,
        onInstalling: () => this.#from(mine, { kind: 'installing' }),
        onInstalled: () => this.#from(mine, { kind: 'installed' }),
        onGreeted: ({ capabilities }) => {
          if (this.#attempt === mine) this.#capabilities = capabilities
        },
        onSessionLost: () => this.#from(mine, { kind: 'session-lost', atMs: this.#nowMs }),
        onRenewed: () => this.#from(mine, { kind: 'opened', atMs: this.#nowMs }),
        onOpened: () => this.#from(mine, { kind: 'opened', atMs: this.#nowMs }),
        onFailed: (failure) => {
          this.#keepTail(mine, failure)
          this.#from(mine, { kind: 'open-failed', atMs: this.#nowMs, ...this.#classify(failure) })
        },
        onLost: (failure) => {
          this.#keepTail(mine, failure)
          this.#from(mine, { kind: 'lost', atMs: this.#nowMs, ...this.#classify(failure) })
        },
        onNotification: (session, method, params) => this.#notified(session, method, params),
        onNoise: (text) => this.#noise(text),
        onResolved: (secrets) => {
          this.#secrets = secrets
        },
      },
      this.#ended,
    )
    this.#attempt = mine
  }

  /** Only the attempt that is current may say anything about the state. */
  #from(attempt: Attempt, event: ConnectionEvent): void {
    if (this.#attempt === attempt) this.#dispatch(event)
  }

  #end(): void {
    const attempt = this.#attempt
    if (attempt === undefined) return
    this.#attempt = undefined
    const ended = attempt.close('the start was cancelled').catch(() => {})
    this.#ended = Promise.all([this.#ended, ended]).then(() => {})
  }

  #keepTail(attempt: Attempt, { details }: HostError): void {
    if (this.#attempt !== attempt) return
    this.#stderrTail = String(attempt.session?.stderrTail || details['stderrTail'] || '')
    this.#noiseCount = attempt.session?.noiseCount ?? this.#noiseCount
  }

  #classify(failure: HostError): ReturnType<typeof classifyFailure> {
    return classifyFailure(failure, {
      ...failureFacts(this.definition, this.#attempt?.credentials ?? 'none', this.#options.signIn),
      stderrTail: this.#stderrTail,
      secrets: this.#secrets,
    })
  }

  #notified(session: ServerSession | undefined, method: string, params: JsonObject): void {
    const { sink, emit, definition } = this.#options
    const event = logEvent(method, params, { server: definition.name, secrets: this.#secrets })
    if (event !== undefined) emit(event)
    if (session !== undefined) sink.notified(session, method, params)
  }

  #noise(text: string): void {
    this.#noiseCount += 1
    this.#options.emit({
      kind: 'server.noise',
      server: this.definition.name,
      text: redact(cleanLine(text, NOISE_CHARS_MAX), this.#secrets),
    })
  }
}

function promiseWithResolve(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
