// One sign-in in this process: its tokens in memory, and the one transaction that renews them for all calls, processes and replicas.
import { HostError, Lane } from '../base/index.ts'
import { type KeyValueStore, LockError } from '../store/index.ts'
import {
  decideRefresh,
  type RefreshAnswer,
  type RefreshReason,
  recordAfter,
  recordWhenRefused,
  type SignInReason,
} from './decide.ts'
import type { Grant, TokenSet } from './grant.ts'
import {
  type CredentialRecord,
  isExpired,
  isExpiring,
  newRecord,
  readRecord,
  recordText,
  standingOf,
  tokenDigest,
} from './record.ts'
import { unavailable } from './sign-in-failures.ts'

/** How new tokens are had. No refresh is ever aborted: an answer that nobody takes would cost the sign-in. */
export interface TokenRequests {
  /** Rejects only when nothing was sent. */
  refresh(record: CredentialRecord, refreshToken: string): Promise<RefreshAnswer & { readonly detail?: string }>
  /** Absent: a person has to sign in. @param signal The close: what is had without a person can be had again. */
  obtain?(signal: AbortSignal): Promise<Grant>
}

/** Where a renewal is; for whoever tests what a death at this point leaves behind. */
export type RenewalStep = 'locking' | 'locked' | 'asking' | 'answered' | 'saved' | 'releasing' | 'released'

/** What a {@link GrantHolder} is made of. */
export interface GrantHolderOptions {
  /** For messages. */
  readonly server: CredentialRecord['server']
  readonly recordId: string
  readonly grantId: string
  open(): Promise<KeyValueStore>
  readonly requests: TokenRequests
  /** Milliseconds of the epoch. */
  dateMs(): number
  setTimer(callback: () => void, ms: number): object
  onStep?(step: RenewalStep): void
  /** Another token is in force, or none can be had any more. */
  onChange?(change: 'refreshed' | SignInReason): void
}

/** How a renewal ended. */
export type Renewal =
  /** There is a token that can be sent. */
  | { readonly kind: 'current' }
  /** A person has to sign in; nothing is tried again by itself. */
  | { readonly kind: 'sign-in'; readonly because: SignInReason }
  /** It may work another time. */
  | { readonly kind: 'failed'; readonly error: HostError }

/** Tries to save what cannot be had a second time. */
const SAVES_MAX = 4
/** Pause before the second try, in milliseconds; each further one is four times as long. */
const SAVE_PAUSE_MS = 50
/** Changes by others, without the lock, that a renewal puts up with. */
const ROUNDS_MAX = 4
/** Pause after a renewal that failed, in milliseconds; it doubles. */
const PAUSE_MS = 1_000
const PAUSE_MS_MAX = 30_000

/** Ends that no later try can change: a new sign-in is another grant. */
const FINAL: ReadonlySet<SignInReason> = new Set(['signed-out', 'replaced', 'refresh-rejected', 'refresh-interrupted'])

/** The tokens of one grant. One per grant and process, whatever number of connections speak with it. */
export class GrantHolder {
  readonly #options: GrantHolderOptions
  readonly #lane = new Lane()
  readonly #running = new Map<string, Promise<Renewal>>()
  #record: CredentialRecord | undefined
  #ended: SignInReason | undefined
  /** Those who wait for the renewal in which it ended have not been answered yet. */
  #answering: { readonly done: Promise<void>; readonly resolve: () => void } | undefined
  /** Answered and not saved: it is saved before anything else is asked for. */
  #unsaved: { readonly from: string; readonly record: CredentialRecord } | undefined
  #pause: { readonly sinceMs: number; readonly ms: number; readonly error: HostError } | undefined

  /** A refresh token is out, and what comes of it is not saved yet. */
  #sent: Promise<void> = Promise.resolve()
  readonly #closing = new AbortController()

  constructor(options: GrantHolderOptions) {
    this.#options = options
  }

  /** What is known in this process, without asking the store. */
  get record(): CredentialRecord | undefined {
    return this.#record
  }

  /** Why a person has to sign in; undefined while that is not known. */
  get ended(): SignInReason | undefined {
    return this.#ended
  }

  /** The tokens to send now, at once; undefined: {@link current} has to be asked. */
  get tokens(): TokenSet | undefined {
    const record = this.#record
    return record === undefined || isExpiring(record, this.#options.dateMs()) ? undefined : record.tokens
  }

  /** Those that are about to end, and have not; undefined: there are none, or they are not known yet. */
  get lasting(): TokenSet | undefined {
    const tokens = this.#record?.tokens
    return tokens === undefined || isExpired(tokens, this.#options.dateMs()) ? undefined : tokens
  }

  /**
   * The tokens to send now, read and renewed as far as they have to be.
   * @throws {HostError} `AUTH_REQUIRED`: a person has to sign in; `CREDENTIALS_UNAVAILABLE`, `REFRESH_FAILED`: it may work another time.
   */
  async current(): Promise<TokenSet> {
    // Whoever was taken for dead may have saved its answer after all.
    if (this.#ended === 'refresh-interrupted') await this.#lookAgain()
    if (this.#ended !== undefined) throw this.#signInNeeded(this.#ended)
    if (this.#record === undefined) await this.#load()
    const known = this.tokens
    if (known !== undefined) return known
    const renewal = await this.renew({ kind: 'expiring' }, { mayRefresh: true })
    if (renewal.kind === 'sign-in') throw this.#signInNeeded(renewal.because)
    // Until its very end the old token does.
    const tokens = this.lasting
    if (tokens !== undefined) return tokens
    throw renewal.kind === 'failed' ? renewal.error : this.#failed('the new token had ended before it came')
  }

  /** Whoever asks for the same reason shares one renewal. It goes on when they leave. Never rejects. */
  renew(reason: RefreshReason, { mayRefresh }: { readonly mayRefresh: boolean }): Promise<Renewal> {
    const key = `${mayRefresh ? 'refresh' : 'adopt'} ${reason.kind === 'rejected' ? tokenDigest(reason.accessToken) : ''}`
    let running = this.#running.get(key)
    if (running === undefined) {
      running = this.#renew(reason, mayRefresh).finally(() => {
        this.#running.delete(key)
        this.#answerSoon()
      })
      this.#running.set(key, running)
    }
    return running
  }

  /** The record as it has just been saved by a sign-in of this process. */
  adopt(record: CredentialRecord): void {
    this.#record = record
    this.#ended = undefined
  }

  /** Resolves when those have been answered who learn that it has ended. Never rejects. */
  async whenAnswered(): Promise<void> {
    await this.#answering?.done
  }

  /** Resolves when no renewal is under way that has begun before. Never rejects. */
  async whenIdle(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  /**
   * Sends no refresh token any more, waits for nobody who holds the record, and resolves when what has been sent is answered and saved: a program that ends before that costs the sign-in. Never
   * rejects.
   */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#sent
  }

  /** Reads without a lock: writers replace whole values. */
  async #load(): Promise<void> {
    const record = await this.#stored(await this.#open())
    if (record !== undefined && record.record.grantId === this.#options.grantId) this.#record = record.record
    else if (this.#options.requests.obtain === undefined) {
      const because = this.#end(record === undefined ? 'signed-out' : 'replaced')
      this.#answerSoon()
      throw this.#signInNeeded(because)
    }
  }

  async #lookAgain(): Promise<void> {
    const found = await this.#stored(await this.#open())
    const { grantId, dateMs } = this.#options
    if (found?.record.grantId !== grantId || standingOf(found.record, dateMs()) === 'unusable') return
    this.#ended = undefined
    this.#record = found.record
  }

  async #renew(reason: RefreshReason, mayRefresh: boolean): Promise<Renewal> {
    const leave = await this.#lane.enter()
    try {
      const known = this.tokens
      // Somebody before us in this process may have had the same reason.
      if (known !== undefined && (reason.kind === 'expiring' || known.accessToken !== reason.accessToken))
        return { kind: 'current' }
      if (this.#pause !== undefined && this.#isPaused(this.#pause)) return { kind: 'failed', error: this.#pause.error }
      const renewal = await this.#locked(reason, mayRefresh)
      this.#pause = renewal.kind === 'failed' ? this.#pauseAfter(renewal.error) : undefined
      return renewal
    } finally {
      leave()
    }
  }

  /** A clock that was set back must not make seconds into days. */
  #isPaused({ sinceMs, ms }: { readonly sinceMs: number; readonly ms: number }): boolean {
    const passedMs = this.#options.dateMs() - sinceMs
    return passedMs >= 0 && passedMs < ms
  }

  #pauseAfter(error: HostError): { readonly sinceMs: number; readonly ms: number; readonly error: HostError } {
    const ms = this.#pause === undefined ? PAUSE_MS : Math.min(this.#pause.ms * 2, PAUSE_MS_MAX)
    return { sinceMs: this.#options.dateMs(), ms, error }
  }

  async #locked(reason: RefreshReason, mayRefresh: boolean): Promise<Renewal> {
    const { recordId, onStep } = this.#options
    try {
      const store = await this.#open()
      onStep?.('locking')
      const lock = await store.lock(recordId, { signal: this.#closing.signal })
      try {
        onStep?.('locked')
        return await this.#decided(store, reason, mayRefresh)
      } finally {
        onStep?.('releasing')
        // What was decided holds, whether or not the claim can be taken back now: it is tried again, and ends with this process.
        await lock[Symbol.asyncDispose]().catch(() => {})
        onStep?.('released')
      }
    } catch (error) {
      const isClosed = HostError.is(error, 'CANCELLED') && this.#closing.signal.aborted
      return { kind: 'failed', error: isClosed ? this.#closed() : this.#unavailable(error) }
    }
  }

  /** Everything that is decided here is decided on what the store holds now. */
  async #decided(store: KeyValueStore, reason: RefreshReason, mayRefresh: boolean): Promise<Renewal> {
    const { grantId, requests } = this.#options
    await this.#saveLate(store)
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const found = await this.#stored(store)
      const nowMs = this.#options.dateMs()
      const isMachine = requests.obtain !== undefined
      const plan = decideRefresh({ stored: found?.record, grantId, reason, mayRefresh, isMachine, nowMs })
      switch (plan.kind) {
        case 'adopt':
          this.#use(plan.record)
          return { kind: 'current' }
        case 'sign-in':
          if (found?.record.grantId === grantId) await this.#noteRefused(store, found, reason)
          return { kind: 'sign-in', because: this.#end(plan.because) }
        case 'obtain':
          return this.#obtain(store, found?.text)
        case 'refresh': {
          const renewal = await this.#refresh(store, { ...plan, reason, text: found?.text ?? '' })
          if (renewal !== undefined) return renewal
        }
      }
    }
    return { kind: 'failed', error: this.#failed('others kept changing it meanwhile') }
  }

  /** Undefined: somebody has changed the record without the lock (a sign-out, a sign-in); decide again. */
  async #refresh(store: KeyValueStore, from: RefreshFrom): Promise<Renewal | undefined> {
    if (this.#closing.signal.aborted) return { kind: 'failed', error: this.#closed() }
    const renewal = this.#exchange(store, from)
    this.#sent = settled(renewal)
    return renewal
  }

  async #exchange(store: KeyValueStore, from: RefreshFrom): Promise<Renewal | undefined> {
    const { requests, onStep } = this.#options
    const { record, refreshToken, reason } = from
    const attempt = { refreshDigest: tokenDigest(refreshToken), startedAtMs: this.#options.dateMs() }
    // Written first: whoever finds it after our death knows that this token may have been used up.
    const marked = recordText({ ...record, attempt })
    if (!(await this.#mark(store, from, marked))) return undefined
    onStep?.('asking')
    const answer = await this.#ask(() => requests.refresh(record, refreshToken))
    onStep?.('answered')
    const nowMs = this.#options.dateMs()
    const after = recordAfter(record, answer, nowMs)
    const next = recordWhenRefused(after, { reason, nowMs }) ?? after
    this.#unsaved = { from: marked, record: next }
    const isSaved = await this.#save(store, marked, recordText(next))
    this.#unsaved = undefined
    onStep?.('saved')
    if (!isSaved) return undefined
    switch (answer.kind) {
      case 'refreshed':
        this.#use(next)
        return { kind: 'current' }
      case 'rejected':
        return { kind: 'sign-in', because: this.#end('refresh-rejected') }
      case 'failed':
        return { kind: 'failed', error: this.#failed(answer.detail ?? 'the authorization server did not answer') }
    }
  }

  /**
   * A store that fails may have written the mark all the same. Nothing has been sent then, so it is taken back before anybody takes it for that of a program
   * that died.
   */
  async #mark(
    store: KeyValueStore,
    { record, text }: { readonly record: CredentialRecord; readonly text: string },
    marked: string,
  ): Promise<boolean> {
    const { recordId } = this.#options
    try {
      return await store.compareAndSwap(recordId, text, marked)
    } catch (error) {
      // Without the lock of the swap nothing was written.
      if (error instanceof LockError) throw error
      this.#unsaved = { from: marked, record }
      const isTold = await store.compareAndSwap(recordId, marked, text).then(
        () => true,
        () => false,
      )
      if (isTold) this.#unsaved = undefined
      throw error
    }
  }

  async #ask(
    request: () => Promise<RefreshAnswer & { readonly detail?: string }>,
  ): Promise<RefreshAnswer & { readonly detail?: string }> {
    try {
      return await request()
    } catch (error) {
      return { kind: 'failed', detail: error instanceof Error ? error.message : String(error) }
    }
  }

  async #obtain(store: KeyValueStore, before: string | undefined): Promise<Renewal> {
    const { requests, server, grantId } = this.#options
    const obtaining = requests.obtain?.(this.#closing.signal)
    this.#sent = settled(obtaining)
    const grant = await obtaining
    if (grant === undefined) return { kind: 'sign-in', because: 'signed-out' }
    const record = newRecord(grant, { server, grantId, nowMs: this.#options.dateMs() })
    await this.#save(store, before, recordText(record))
    this.#use(record)
    return { kind: 'current' }
  }

  /** What was answered cannot be had again: a disk that is full for a moment must not cost the sign-in. */
  async #save(store: KeyValueStore, expected: string | undefined, text: string): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        return await store.compareAndSwap(this.#options.recordId, expected, text)
      } catch (error) {
        if (tries >= SAVES_MAX) throw error
        await new Promise<void>((resolve) => void this.#options.setTimer(resolve, SAVE_PAUSE_MS * 4 ** (tries - 1)))
      }
    }
  }

  /** Saves what an earlier renewal could not. What has been changed since stays as it is. */
  async #saveLate(store: KeyValueStore): Promise<void> {
    const unsaved = this.#unsaved
    if (unsaved === undefined) return
    await this.#save(store, unsaved.from, recordText(unsaved.record))
    this.#unsaved = undefined
  }

  async #open(): Promise<KeyValueStore> {
    try {
      return await this.#options.open()
    } catch (error) {
      throw this.#unavailable(error)
    }
  }

  /** For whoever asks how this sign-in is. A store that takes no note of it does not change what has been decided. */
  async #noteRefused(
    store: KeyValueStore,
    { record, text }: { readonly record: CredentialRecord; readonly text: string },
    reason: RefreshReason,
  ): Promise<void> {
    const refused = recordWhenRefused(record, { reason, nowMs: this.#options.dateMs() })
    if (refused !== undefined)
      await store.compareAndSwap(this.#options.recordId, text, recordText(refused)).catch(() => false)
  }

  async #stored(
    store: KeyValueStore,
  ): Promise<{ readonly record: CredentialRecord; readonly text: string } | undefined> {
    let found: Awaited<ReturnType<KeyValueStore['get']>>
    try {
      found = await store.get(this.#options.recordId)
    } catch (error) {
      throw this.#unavailable(error)
    }
    if (found.kind === 'absent') return undefined
    const record = found.kind === 'found' ? readRecord(found.value) : undefined
    if (found.kind === 'found' && record !== undefined) return { record, text: found.value }
    throw this.#unavailable(new Error(found.kind === 'damaged' ? found.because : 'it is no sign-in'))
  }

  #use(record: CredentialRecord): void {
    const isOther = this.#record?.tokens.accessToken !== record.tokens.accessToken
    this.#record = record
    this.#ended = undefined
    if (isOther) this.#options.onChange?.('refreshed')
  }

  #end(because: SignInReason): SignInReason {
    if (FINAL.has(because) && this.#ended !== because) {
      this.#ended = because
      this.#record = undefined
      this.#answering ??= deferred()
      this.#options.onChange?.(because)
    }
    return because
  }

  /** With all that follows from an answer before the next timer. */
  #answerSoon(): void {
    const answering = this.#answering
    if (answering === undefined) return
    this.#answering = undefined
    this.#options.setTimer(answering.resolve, 0)
  }

  #signInNeeded(because: SignInReason): HostError {
    const { name } = this.#options.server
    return new HostError('AUTH_REQUIRED', `Server "${name}": ${SENTENCES[because]}`, {
      details: { server: name, because },
    })
  }

  #failed(why: string): HostError {
    const { name } = this.#options.server
    return new HostError('REFRESH_FAILED', `The sign-in of server "${name}" could not be renewed: ${why}`, {
      details: { server: name },
    })
  }

  #closed(): HostError {
    return this.#failed('the host is closed')
  }

  #unavailable(error: unknown): HostError {
    return unavailable(this.#options.server, error)
  }
}

/** Never rejects. */
async function settled(work: Promise<unknown> | undefined): Promise<void> {
  await Promise.allSettled([work])
}

function deferred(): { readonly done: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => {}
  const done = new Promise<void>((settle) => {
    resolve = settle
  })
  return { done, resolve }
}

/** What a renewal begins with. */
interface RefreshFrom {
  readonly reason: RefreshReason
  readonly record: CredentialRecord
  readonly refreshToken: string
  /** The record as it is stored. */
  readonly text: string
}

/** Why a person has to sign in, as the end of a sentence about a server. */
export const SENTENCES: Readonly<Record<SignInReason, string>> = {
  'signed-out': 'nobody is signed in',
  replaced: 'somebody has signed in anew',
  'token-refused': 'the server does not accept the sign-in',
  'no-refresh-token': 'the sign-in is over, and cannot be renewed without a person',
  'refresh-rejected': 'the authorization server has ended the sign-in',
  'refresh-interrupted': 'a renewal was cut off, so that the sign-in may be used up',
}
