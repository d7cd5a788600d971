// The sign-ins of one host: who is signed in where, what connections speak with, and how a person signs in and out.
import { untilAborted } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { SignInOptions, StepUp } from './authorization-servers.ts'
import type { Grant } from './grant.ts'
import type { GrantHolder } from './grant-holder.ts'
import { isMachine, machineEntry, serverOf } from './machine-sign-in.ts'
import { OpenWork } from './open-work.ts'
import { usesStoredSignIn } from './own-authorization.ts'
import { mayRevoke, newRecord } from './record.ts'
import { type Refusal, SignInAuthorization } from './sign-in-authorization.ts'
import { notSupported, unavailable } from './sign-in-failures.ts'
import { type IndexReading, type SignInEntry, SignInIndex } from './sign-in-index.ts'
import type { Place } from './sign-in-records.ts'
import { type SignInStatus, statusOfSignIn } from './sign-in-status.ts'
import type { StoreChoice } from './sign-in-stores.ts'
import type { SignInsOptions, SignInTools } from './sign-in-tools.ts'

/** A person has signed in. */
export interface SignedIn {
  readonly server: string
  readonly issuer: string
  readonly subject?: Grant['subject']
  /** What was granted, as far as the authorization server says. */
  readonly scopes?: readonly string[]
  readonly store: StoreChoice
}

/** How a sign-out went. */
export interface SignedOut {
  readonly server: string
  /** Was there a sign-in? */
  readonly wasSignedIn: boolean
  /** Whether the authorization server was told (RFC 7009). `unsupported`: it takes no such word; `failed`: it may go on honouring the tokens to their end. */
  readonly revocation: 'done' | 'unsupported' | 'failed' | 'nothing-to-revoke'
}

/** Most scopes that are remembered for the next sign-in. */
const WANTED_SCOPES_MAX = 64
/** For an authorization server to take back a sign-in that another one has replaced, in milliseconds. */
const REPLACED_REVOCATION_MS = 5_000

/** The stored sign-ins of a host's servers. */
export class SignIns {
  readonly #options: SignInsOptions
  readonly #index: SignInIndex
  /** What few hosts need in their first moments: who signs in, renews, or has something stored. */
  #loading: Promise<SignInTools> | undefined
  #tools: SignInTools | undefined
  readonly #work = new OpenWork()
  /** The sign-in that was last found for each server, by name; undefined: none. */
  readonly #seen = new Map<string, string | undefined>()

  constructor(options: SignInsOptions) {
    this.#options = options
    this.#index = new SignInIndex(options.index)
  }

  /** The sign-in of a server as a plan needs it. It touches neither the network nor a keyring. */
  async read(definition: ServerDefinition): Promise<{
    readonly snapshot: { readonly kind: 'value'; readonly key: string } | { readonly kind: 'none' | 'unreadable' }
    readonly record?: string
    readonly isContended: boolean
  }> {
    if (!this.#applies(definition)) return { snapshot: { kind: 'none' }, isContended: false }
    if (isMachine(definition)) {
      const { recordId: record } = machineEntry(definition)
      return { snapshot: { kind: 'value', key: record }, record, isContended: false }
    }
    await this.#tools?.holders.whenAnswered(definition.name)
    const reading = await this.#read(definition)
    // What cannot be read now is no other sign-in than before.
    if (reading.kind !== 'unreadable') this.#seen.set(definition.name, grantIn(reading))
    if (reading.kind !== 'entry') return { snapshot: { kind: reading.kind }, isContended: false }
    const { recordId: record, grantId } = reading.entry
    return { snapshot: { kind: 'value', key: `${record} ${grantId}` }, record, isContended: false }
  }

  /**
   * Those of these servers whose sign-in another program may change in a way that matters: they had one, or wait for one.
   * @param waiting Names of servers that nobody is signed in to.
   */
  watched(definitions: readonly ServerDefinition[], waiting: ReadonlySet<string>): readonly ServerDefinition[] {
    return definitions.filter(
      (definition) =>
        (waiting.has(definition.name) || this.#seen.get(definition.name) !== undefined) &&
        this.#applies(definition) &&
        !isMachine(definition),
    )
  }

  /** Is the sign-in of one of these servers another one than {@link read} found last? What cannot be read is not known to be. */
  async haveChanged(definitions: readonly ServerDefinition[]): Promise<boolean> {
    const looks = definitions.map(async (definition) => {
      const reading = await this.#read(definition)
      return reading.kind !== 'unreadable' && grantIn(reading) !== this.#seen.get(definition.name)
    })
    return (await Promise.all(looks)).includes(true)
  }

  /** What a new connection speaks with; undefined: it speaks with no stored sign-in whatever is stored. */
  authorizationFor(definition: ServerDefinition): SignInAuthorization | undefined {
    if (!this.#applies(definition)) return undefined
    return new SignInAuthorization({
      serverUrl: serverOf(definition).url,
      timers: this.#options.port,
      find: () => this.#find(definition),
      proofs: async (holder) => (await this.#load()).servers.proofs(holder),
      onRefused: (refusal, holder) => this.#noteRefusal(definition, refusal, holder),
    })
  }

  /**
   * Lets a person sign in, and keeps what comes of it. What was there before is used until then, and stays if it fails.
   * @throws {HostError} `SIGN_IN_UNSUPPORTED`, `SIGN_IN_FAILED`, `SIGN_IN_TIMEOUT`, `CREDENTIALS_UNAVAILABLE`; soon after: `CANCELLED` on abort, `HOST_CLOSED`.
   */
  async signIn(definition: ServerDefinition, options: SignInOptions = {}): Promise<SignedIn> {
    if (!this.#applies(definition) || isMachine(definition)) throw notSupported(definition)
    return this.#work.run(options.signal, (signal) => this.#signIn(definition, { ...options, signal }))
  }

  async #signIn(
    definition: ServerDefinition,
    options: SignInOptions & { readonly signal: AbortSignal },
  ): Promise<SignedIn> {
    const { signal } = options
    const before = await this.#index.read(serverOf(definition))
    // Asked before any page is opened: who has consented must not learn then that nothing can be kept.
    const choice = await untilAborted(this.#options.stores.choose(), signal)
    const store = await this.#guard(definition, () => this.#options.stores.open(choice.kind))
    const { servers } = await this.#load()
    const grant = await servers.signIn(definition, await this.#stepUp(before), options)
    await this.#keep(definition, grant, { store, kind: choice.kind, signal })
    this.#options.onChange({ server: definition.name, change: 'signed-in' })
    const { issuer, subject, tokens } = grant
    return {
      server: definition.name,
      issuer: issuer.issuer,
      ...(subject === undefined ? {} : { subject }),
      ...(tokens.scopes === undefined ? {} : { scopes: tokens.scopes }),
      store: choice,
    }
  }

  /**
   * Deletes the sign-in of a server here, and then tells the authorization server.
   * @throws {HostError} `CREDENTIALS_UNAVAILABLE`: it could not be deleted, and is still there; before that: `CANCELLED` on abort, `HOST_CLOSED`. After it,
   * both only end the telling (`revocation: 'failed'`).
   */
  signOut(definition: ServerDefinition, { signal }: { readonly signal?: AbortSignal } = {}): Promise<SignedOut> {
    return this.#work.run(signal, (inner) => this.#signOut(definition, inner))
  }

  async #signOut(definition: ServerDefinition, signal: AbortSignal): Promise<SignedOut> {
    const server = definition.name
    const reading = await this.#index.read(serverOf(definition))
    if (reading.kind === 'none') return { server, wasSignedIn: false, revocation: 'nothing-to-revoke' }
    if (reading.kind === 'unreadable') {
      await this.#guard(definition, () => this.#index.remove(serverOf(definition)))
      return { server, wasSignedIn: true, revocation: 'failed' }
    }
    const { records, holders, servers } = await this.#load()
    const record = await this.#guard(definition, () => records.take(reading, signal))
    holders.retire(reading.entry)
    this.#options.onChange({ server, change: 'signed-out' })
    return {
      server,
      wasSignedIn: true,
      revocation: record === undefined ? 'failed' : await servers.revoke(definition, record, { signal }),
    }
  }

  /**
   * What can be said of the sign-in of a server.
   * @param options `probe`: ask a server that nobody is signed in to whether it wants that, 5 s at most. Default false: nothing is asked.
   * @throws {HostError} `CANCELLED` on abort, `HOST_CLOSED`, both only while a server is asked.
   */
  async status(
    definition: ServerDefinition,
    { probe = false, signal }: { readonly probe?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<SignInStatus> {
    const { env, port, stores } = this.#options
    const facts = { env, hasAccount: this.#options.hasAccount(definition), nowMs: port.dateMs(), mode: stores.mode }
    if (!this.#applies(definition) || isMachine(definition)) return statusOfSignIn(definition, facts)
    const reading = await this.#index.read(serverOf(definition))
    // What is switched off is not asked, and nobody has to sign in for it.
    if (reading.kind === 'none' && !definition.enabled) return statusOfSignIn(definition, facts)
    if (reading.kind === 'none' && probe) {
      const { servers } = await this.#load()
      const wants = await this.#work.run(signal, (inner) => servers.wantsSignIn(definition, inner))
      return statusOfSignIn(definition, { ...facts, reading, wants })
    }
    if (reading.kind !== 'entry') return statusOfSignIn(definition, { ...facts, reading })
    if (!stores.reads(reading.entry.store)) return statusOfSignIn(definition, { ...facts, reading, isOutOfMode: true })
    try {
      const { records } = await this.#load()
      return statusOfSignIn(definition, { ...facts, reading, ...(await records.look(reading.entry)) })
    } catch (error) {
      const because = error instanceof Error ? error.message : String(error)
      return statusOfSignIn(definition, { ...facts, reading, unreadableBecause: because })
    }
  }

  /** Where a new sign-in would be kept, tried. @throws {HostError} `CREDENTIALS_UNAVAILABLE` */
  destination(): Promise<StoreChoice> {
    return this.#options.stores.choose()
  }

  /**
   * Ends sign-ins, sign-outs and questions that are under way, waits for renewals, so that no answer is lost, and lets go of what stores have open.
   * Idempotent.
   */
  async close(): Promise<void> {
    await this.#work.close()
    await (await this.#loading)?.holders.close()
    await this.#options.stores.close()
  }

  #applies(definition: ServerDefinition): boolean {
    const { env } = this.#options
    return usesStoredSignIn(definition, { env, hasAccount: this.#options.hasAccount(definition) })
  }

  /** An entry that is kept where this host does not look counts as none. */
  async #read(definition: ServerDefinition): Promise<IndexReading> {
    const reading = await this.#index.read(serverOf(definition))
    return reading.kind === 'entry' && !this.#options.stores.reads(reading.entry.store) ? { kind: 'none' } : reading
  }

  /** For a connection that speaks for the first time: from then on, what its entry says counts for the renewals of all. */
  async #find(definition: ServerDefinition): Promise<GrantHolder | undefined> {
    // Without what holds sign-ins there is none that could be renewed by other settings.
    this.#tools?.holders.follow(definition)
    if (isMachine(definition)) return this.#holderOf(definition, machineEntry(definition))
    const reading = await this.#read(definition)
    switch (reading.kind) {
      case 'none':
        return undefined
      case 'unreadable':
        throw unavailable(definition, reading.because)
      case 'entry':
        return this.#holderOf(definition, reading.entry)
    }
  }

  async #holderOf(definition: ServerDefinition, entry: SignInEntry): Promise<GrantHolder> {
    const { holders } = await this.#load()
    holders.follow(definition)
    return holders.of(definition, entry)
  }

  #load(): Promise<SignInTools> {
    this.#loading ??= import('./sign-in-tools.ts').then(({ makeTools }) => {
      this.#tools = makeTools(this.#options, this.#index)
      return this.#tools
    })
    return this.#loading
  }

  async #keep(definition: ServerDefinition, grant: Grant, place: Place): Promise<void> {
    const { port } = this.#options
    const { records, holders, servers } = await this.#load()
    const grantId = port.randomBytes(16).toString('hex')
    const record = newRecord(grant, { server: serverOf(definition), grantId, nowMs: port.dateMs() })
    const { entry, former, replaced } = await this.#guard(definition, () => records.keep(record, place))
    holders.of(definition, entry).adopt(record)
    if (former !== undefined) holders.retire(former)
    const limits = { timeoutMs: REPLACED_REVOCATION_MS }
    // Nobody who signs in waits for that, and nothing depends on it; the close does.
    for (const one of replaced)
      if (mayRevoke(one, record)) void this.#work.finish(servers.revoke(definition, one, limits))
  }

  /** What was granted is asked for again, besides what was missing: a new grant takes the place of the old one. */
  async #stepUp(before: IndexReading): Promise<StepUp> {
    if (before.kind !== 'entry') return { granted: [], wanted: [] }
    const { records } = await this.#load()
    const known = await records.of(before.entry).catch(() => undefined)
    return { granted: known?.tokens.scopes ?? known?.requestedScopes ?? [], wanted: before.entry.wantedScopes ?? [] }
  }

  async #guard<Value>(definition: ServerDefinition, work: () => Promise<Value>): Promise<Value> {
    try {
      return await work()
    } catch (error) {
      throw unavailable(definition, error)
    }
  }

  /** A scope that is missing is remembered with the sign-in, so that another program asks for it, too. */
  async #noteRefusal(definition: ServerDefinition, { wwwAuthenticate }: Refusal, holder: GrantHolder | undefined) {
    if (wwwAuthenticate === undefined) return
    const { servers } = await this.#load()
    const scopes = await servers.heard(definition, wwwAuthenticate)
    if (holder === undefined || scopes.length === 0) return
    const reading = await this.#index.read(serverOf(definition))
    if (reading.kind !== 'entry') return
    const known = reading.entry.wantedScopes ?? []
    const wantedScopes = [...new Set([...known, ...scopes])].slice(0, WANTED_SCOPES_MAX)
    if (wantedScopes.length === known.length) return
    // Only a hint for the next sign-in: nothing fails for it.
    await this.#index.swap(reading, { ...reading.entry, wantedScopes }).catch(() => {})
  }
}

function grantIn(reading: IndexReading): string | undefined {
  return reading.kind === 'entry' ? reading.entry.grantId : undefined
}
