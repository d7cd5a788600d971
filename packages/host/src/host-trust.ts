// What of a host is about trust: who is asked, as whom it speaks, and what holds while its definitions change. Part of the composition root.
import { AccountAuth, type AccountSource, type AuthScopeKey } from './auth/index.ts'
import { HostError, type JsonObject } from './base/index.ts'
import type { ServerDefinition } from './config/index.ts'
import {
  DEFAULT_TRUST,
  Elicitation,
  type ElicitationAuthority,
  type ElicitationLimits,
  type HostHandlers,
  type TrustPolicy,
} from './elicitation/index.ts'
import type { HostEvent } from './events/index.ts'
import { type Authorization, clientCapabilities, type Introduction, type Platform } from './protocol/index.ts'

/** Who decides about what servers ask. What is left out has its default: a person is asked, and nobody answers before. */
export type TrustOptions = Partial<Omit<ElicitationAuthority, 'servers'>>

/** The part of the options of a host that is about trust. */
export interface HostTrustInit extends TrustOptions {
  readonly definitions: readonly ServerDefinition[]
  readonly handlers?: HostHandlers
  readonly questionLimits?: Partial<ElicitationLimits>
  readonly account?: AccountSource
  readonly clientExtensions?: JsonObject
  readonly authorization?: (definition: ServerDefinition) => Authorization | undefined
}

/** Questions and account of one host. */
export class HostTrust {
  readonly elicitation: Elicitation
  readonly #account: AccountAuth
  readonly #authorization: HostTrustInit['authorization']
  readonly #extensions: JsonObject | undefined
  #trust: TrustOptions
  /** Of the last publication. */
  #published: ReadonlySet<string>
  #servers: ReadonlySet<string>

  constructor(init: HostTrustInit, { platform, emit }: { platform: Platform; emit: (event: HostEvent) => void }) {
    const { definitions, handlers, questionLimits, account, authorization, trust, trustOf, surfaceForms, reviewer } =
      init
    this.#trust = present({ trust, trustOf, surfaceForms, reviewer })
    this.#published = inUse(definitions)
    this.#servers = this.#published
    this.#authorization = authorization
    this.#extensions = init.clientExtensions
    this.#account = new AccountAuth(account)
    this.elicitation = new Elicitation({
      policy: this.#authority,
      platform,
      emit,
      ...(handlers === undefined ? {} : { handlers }),
      ...(questionLimits === undefined ? {} : { limits: questionLimits }),
    })
  }

  /** How a connection to the server introduces itself, and who answers there. */
  introduction(server: string): Introduction {
    const { elicitation } = this
    return {
      capabilities: clientCapabilities({ ...elicitation.offers, extensions: this.#extensions }),
      handlers: elicitation.handlersFor(server),
      judge: (own) => elicitation.judge(server, own),
    }
  }

  /**
   * The account's token where it may go, else a sign-in; with `auth: 'account'` or `'none'` no sign-in is looked at.
   * @param stored The sign-in that is kept here, if the program keeps none itself.
   */
  authorization(
    definition: ServerDefinition,
    stored: (definition: ServerDefinition) => Authorization | undefined,
  ): Authorization | undefined {
    const selection = this.#account.select(definition)
    if (selection.kind === 'account') return this.#account.authorizationFor(definition)
    if (selection.kind === 'refused') return refusal(definition)
    if (definition.auth !== 'oauth') return undefined
    return this.#authorization === undefined ? stored(definition) : this.#signIn(definition, this.#authorization)
  }

  /** It is the program's own: when it throws, that is the failure of this server, and of no other. */
  #signIn(
    definition: ServerDefinition,
    authorization: NonNullable<HostTrustInit['authorization']>,
  ): Authorization | undefined {
    try {
      return authorization(definition)
    } catch (cause) {
      const why = `The program has no sign-in for server "${definition.name}": its authorization threw`
      return rejecting(new HostError('AUTH_FAILED', why, { cause, details: { server: definition.name } }))
    }
  }

  /** The sign-in that speaks for the server; undefined where the account does not. */
  accountKey(definition: ServerDefinition): AuthScopeKey | undefined {
    return this.#account.keyFor(definition)
  }

  /** Who the host is signed in as; undefined: nobody. */
  get account(): AuthScopeKey | undefined {
    return this.#account.scopeKey
  }

  /** How far a server is trusted. */
  of(server: string): TrustPolicy {
    return this.#trust.trustOf?.[server] ?? this.#trust.trust ?? DEFAULT_TRUST
  }

  /** Told after somebody else has signed in. @returns a function that ends it. */
  onAccountReplaced(listener: () => void): () => void {
    return this.#account.onReplaced(listener)
  }

  /** Holds at once, for every connection there is. */
  replace(trust: TrustOptions): void {
    this.#trust = trust
    this.elicitation.replacePolicy(this.#authority)
  }

  /** While definitions are replaced, servers of both may ask; then only those that are in use. Nothing changes when it fails. */
  async during<Outcome>(definitions: readonly ServerDefinition[], publish: () => Promise<Outcome>): Promise<Outcome> {
    const after = inUse(definitions)
    this.#use(new Set([...this.#servers, ...after]))
    try {
      const outcome = await publish()
      this.#published = after
      return outcome
    } finally {
      // Another replacement may have been published meanwhile: what holds is what was published last.
      this.#use(this.#published)
    }
  }

  close(): void {
    this.elicitation.close()
    this.#account.close()
  }

  get #authority(): ElicitationAuthority {
    return { trust: DEFAULT_TRUST, ...this.#trust, servers: this.#servers }
  }

  #use(servers: ReadonlySet<string>): void {
    this.#servers = servers
    this.elicitation.replacePolicy(this.#authority)
  }
}

function inUse(definitions: readonly ServerDefinition[]): ReadonlySet<string> {
  return new Set(definitions.filter(({ enabled }) => enabled).map(({ name }) => name))
}

/** A start that would need the account where it never goes fails before anything is sent. */
function refusal({ name, environment }: ServerDefinition): Authorization {
  const why = `Server "${name}" would see the account of this host in the environment "${environment}", and it only goes to servers of "local"; give it a static Authorization header of its own`
  return rejecting(new HostError('AUTH_REQUIRED', why, { details: { server: name, environment } }))
}

function rejecting(error: HostError): Authorization {
  return { header: () => Promise.reject(error), challenge: () => Promise.resolve(false) }
}

function present({
  trust,
  trustOf,
  surfaceForms,
  reviewer,
}: { [Key in keyof TrustOptions]: TrustOptions[Key] | undefined }): TrustOptions {
  return {
    ...(trust === undefined ? {} : { trust }),
    ...(trustOf === undefined ? {} : { trustOf }),
    ...(surfaceForms === undefined ? {} : { surfaceForms }),
    ...(reviewer === undefined ? {} : { reviewer }),
  }
}
