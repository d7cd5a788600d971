// What a host can do, and nothing of how.
import type { SignedIn, SignedOut, SignInOptions, SignInStatus } from './auth/index.ts'
import type { JsonObject } from './base/index.ts'
import type { Aggregate, CatalogTool, ToolLife } from './catalog/index.ts'
import type { RegistrationConflict, ResolvedRegistration, ServerDefinition } from './config/index.ts'
import type { ServerPort } from './connection/index.ts'
import type { AskCallback, QuestionAnswer, RequestHandlers } from './elicitation/index.ts'
import type {
  HostEventListener,
  PendingQuestion,
  PlannedServer,
  QuestionOutcome,
  ServerStatus,
} from './events/index.ts'
import type { ResourceClient } from './extensions/index.ts'
import type { HostConfiguration } from './host-registry.ts'
import type { TrustOptions } from './host-trust.ts'
import type { Binding, CallOutcome, CaptureRequest, DedicatedOptions, DirectCall, ServerLife } from './set/index.ts'
import type { Thread, ThreadOptions } from './turn/index.ts'

/** Every configured server, kept connected. */
export interface Host extends AsyncDisposable {
  /** What is published now: the same list until the next generation. */
  readonly definitions: readonly ServerDefinition[]
  /** One per definition, in their order. Looking starts nothing. */
  readonly statuses: readonly ServerStatus[]
  /** @returns a function that ends the subscription. */
  subscribe(listener: HostEventListener): () => void
  /**
   * Resolves when no server is starting or installing any more, or after `waitMs` (default: no limit). Naming servers needs them: those
   * that sleep are started, those that failed are started again if their time has come. Never rejects for what a server does.
   * @throws {HostError} `SERVER_UNKNOWN`; `CANCELLED` on abort, which stops the waiting only.
   */
  whenSettled(options?: {
    readonly waitMs?: number
    readonly servers?: readonly string[]
    readonly signal?: AbortSignal
  }): Promise<void>
  /**
   * The frozen view of now. It waits for servers that are still starting: for required ones until they have settled, for the others no
   * longer than the startup grace, once. Servers that failed are started again if their time has come; nobody waits for them.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`
   */
  bind(request?: CaptureRequest): Promise<Binding>
  /**
   * Begins a conversation: its turns and their steps see what extensions and plugins bring for it. All threads share the connections of the host.
   * Resolves when the extensions have heard of it.
   * @throws {HostError} `OPTIONS_INVALID` for an id that is in use, or more than 10,000 threads; `HOST_CLOSED`.
   */
  thread(options?: ThreadOptions): Promise<Thread>
  /** What extensions have counted so far, by name; at most 1,024 names. */
  readonly extensionCounts: Readonly<Record<string, number>>
  /**
   * Applies other definitions: what nothing changed about stays connected, what changed starts anew, what is gone ends, but not before the
   * last binding that holds it is disposed. Waits for no server. An abort before the new
   * generation is published leaves everything as it was.
   * @returns what was decided about each server.
   * @throws {HostError} `OPTIONS_INVALID`, `HOST_CLOSED`, `CANCELLED`
   */
  configure(definitions: readonly ServerDefinition[], options?: ConfigureOptions): Promise<readonly PlannedServer[]>
  /**
   * What `configure` would do, without doing it. Starts nothing. With `running` it tells what the change would do to a host whose servers are
   * those, each as well as it may be.
   * @throws {HostError} `OPTIONS_INVALID`, `HOST_CLOSED`, `CANCELLED`
   */
  plan(
    definitions: readonly ServerDefinition[],
    options?: ConfigureOptions & { readonly running?: readonly ServerDefinition[] },
  ): Promise<readonly PlannedServer[]>
  /**
   * The tools of all servers for whoever looks around; models work with bindings. What is known of a server that is starting or asleep is shown at
   * once, the others are waited for. A server that cannot be listed is named in `failures` and hides nobody.
   * @throws {HostError} `HOST_CLOSED`, `CANCELLED`
   */
  listTools(options?: { readonly signal?: AbortSignal }): Promise<Aggregate<CatalogTool>>
  /** Names that several sources of one tier wanted. */
  readonly conflicts: readonly RegistrationConflict[]
  /** Why a server, or a tool by its flat name, `SERVER/TOOL` or raw name, is as it is. Starts nothing. */
  explain(name: string): Explanation
  /** The part of `explain` that is about a server; undefined for one that is not configured. Starts nothing. */
  serverLife(server: string): ServerLife | undefined
  /** Resources of single servers; it stays valid while the configuration changes. */
  readonly resources: ResourceClient
  /** Looks again at everything but the definitions: what failed or whose sign-in changed starts anew. @throws {HostError} as `configure`. */
  refresh(options?: { readonly signal?: AbortSignal }): Promise<readonly PlannedServer[]>
  /** The next `configure` or `refresh` starts every server anew. */
  reconnectOnNextRefresh(): void
  /** Ends the starts that are under way. What is ready or asleep is left as it is. */
  cancelStarts(): void
  /**
   * Waits until the servers that their definitions call required have settled.
   * @throws {HostError} `REQUIRED_SERVERS_FAILED` names all that are not ready; `CANCELLED` on abort.
   */
  requireReady(options?: { readonly signal?: AbortSignal }): Promise<void>
  /**
   * Calls a tool by its server and raw name, without a binding: whether or not it is listed or shown to models, but only if the configuration
   * allows it. Every end is an outcome; never rejects.
   */
  callTool(call: DirectCall): Promise<CallOutcome>
  /** The questions of servers that wait for an answer, in the order in which they came. */
  questions(): readonly PendingQuestion[]
  /** How the last 256 questions ended, and why; the oldest first. */
  readonly questionOutcomes: readonly QuestionOutcome[]
  /**
   * Answers an open question.
   * @throws {HostError} `QUESTION_UNKNOWN`; `ANSWER_INVALID`: it does not fit, and the question stays open.
   */
  answer(id: string, response: QuestionAnswer): void
  /** `on`: every question is declined, also those that are open, until it is switched off. */
  declineQuestions(on: boolean): void
  /** Another trust from now on, for every connection there is; nothing is connected anew. What is left out has its default. */
  replaceTrust(trust: TrustOptions): void
  /** Would this `elicitation/create` be shown to a person now? For who passes questions on without the host. */
  leavesToPerson(server: string, params: JsonObject): boolean
  /** Answers to what a server asks, with the trust of this host put before them; for who passes questions on. */
  judge(server: string, handlers: Readonly<Record<string, AskCallback>>): RequestHandlers
  /** A connection of its own to one server, for a client whose capabilities it carries. @throws {HostError} */
  openDedicated(server: string, options: DedicatedOptions): Promise<ServerPort & AsyncDisposable>
  /**
   * Lets a person sign in to a server: finds its authorization server, shows the page, and keeps what comes of it. Then the server is connected anew; that is
   * not waited for.
   * @throws {HostError} `SERVER_UNKNOWN`, `SIGN_IN_UNSUPPORTED`, `SIGN_IN_FAILED`, `SIGN_IN_TIMEOUT`, `CREDENTIALS_UNAVAILABLE`, `HOST_CLOSED`; `CANCELLED` on
   * abort, which leaves everything as it was.
   */
  signIn(server: string, options?: SignInOptions): Promise<SignedIn>
  /**
   * Deletes the sign-in of a server here, tells the authorization server (RFC 7009, 10 s at most), and connects the server anew without it.
   * @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED`; `CREDENTIALS_UNAVAILABLE`: it is still there; `CANCELLED` on abort before that.
   */
  signOut(server: string, options?: { readonly signal?: AbortSignal }): Promise<SignedOut>
  /**
   * Whose credentials each server sees, in their order; never a token. Starts no server and renews nothing.
   * @param options `servers`: only these. `probe`: servers that nobody is signed in to are asked whether they want that, side by side, 5 s at most. Default false.
   * @throws {HostError} `SERVER_UNKNOWN`
   */
  signInStatuses(options?: {
    readonly servers?: readonly string[]
    readonly probe?: boolean
    readonly signal?: AbortSignal
  }): Promise<readonly SignInStatus[]>
  /**
   * Where a new sign-in would be kept, and why. It is tried: a keyring that may be used is given an item and loses it again, which takes 2 s at most.
   * @throws {HostError} `CREDENTIALS_UNAVAILABLE`: nowhere.
   */
  signInStore(): Promise<SignedIn['store']>
  /**
   * Makes a new connection to the server and resolves when it has settled. The old one ends, but not before the last binding that holds
   * it is disposed.
   * @throws {HostError} `SERVER_UNKNOWN`, `HOST_CLOSED`
   */
  reconnect(server: string): Promise<ServerStatus>
  /** The same for every server, side by side. @throws {HostError} `HOST_CLOSED` */
  reconnectAll(): Promise<readonly ServerStatus[]>
  /** Ends everything: processes, sockets, timers. Idempotent. @throws {HostError} `INTERNAL` when a server could not be ended in time. */
  close(): Promise<void>
}

/** What comes with other definitions; registrations and authority that are left out stay as they are. */
export interface ConfigureOptions extends Omit<HostConfiguration, 'definitions'> {
  readonly signal?: AbortSignal
}

/** Everything that is known about a name. Empty for a name that nobody knows. */
export interface Explanation {
  /** The server of that name. */
  readonly server?: ServerLife
  /** Who declared it and who was shadowed; present where others than the configuration have a say. */
  readonly registration?: ResolvedRegistration
  /** The tools that the name may mean, at most 20. */
  readonly tools: readonly ToolLife[]
}
