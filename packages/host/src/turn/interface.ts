// What threads, turns and steps can do, and nothing of how.
import type { JsonObject } from '../base/index.ts'
import type { CatalogTool, NamespacedName } from '../catalog/index.ts'
import type { TrustPolicy } from '../elicitation/index.ts'
import type {
  ApprovalDecision,
  ApprovalRequest,
  ContextFragment,
  ExtensionConfiguration,
  ExtensionStore,
  NativeTool,
  SelectedPluginSnapshot,
  StoreEntry,
  TokenUsage,
  WorldStateSection,
} from '../extensions/index.ts'
import type { Binding, CallOutcome } from '../set/index.ts'

/** What a thread is made of. */
export interface ThreadOptions {
  /** Default: a random one. */
  readonly id?: string
  /** Values of the thread's store before any extension sees it. */
  readonly initial?: readonly StoreEntry[]
  /** Default: plugins take part, and no extension has settings. */
  readonly configuration?: Partial<ExtensionConfiguration>
  /** Asked for consent where neither the configuration nor a reviewer has decided. Absent: what needs consent is denied. */
  readonly approve?: (request: ApprovalRequest) => Promise<ApprovalDecision>
  /** Who decides about consents, in place of the trust of the host. */
  readonly trust?: TrustPolicy
  /** Goes on with an earlier thread. Default false. */
  readonly isResumed?: boolean
  /** Abort ends the thread. */
  readonly signal?: AbortSignal
}

/** One conversation: its stores, its settings, what was approved in it. Threads of one host share its connections. */
export interface Thread extends AsyncDisposable {
  readonly id: string
  readonly store: ExtensionStore
  /** Plugins that take part now. */
  readonly plugins: SelectedPluginSnapshot
  /** What the model is told before everything else, in the order of slots. */
  context(options?: { readonly signal?: AbortSignal }): Promise<readonly ContextFragment[]>
  /** Other settings from now on; extensions have heard of them when it returns. */
  configure(next: Partial<ExtensionConfiguration>): void
  /**
   * Begins a turn: one thing that a person has said, worked on to its end. A turn that still runs is aborted first (`replaced`).
   * Resolves when the contributors of its start have run.
   * @throws {HostError} `HOST_CLOSED`; `CANCELLED` on abort.
   */
  turn(options?: TurnOptions): Promise<Turn>
  /** Connects every server of the host anew, with the next step at the latest. */
  refreshServers(): void
  /** What is needed before the first step is prepared, without a turn. Best effort; never rejects. */
  prewarm(): Promise<void>
  /** Aborts the turn that runs, tells extensions, lets go of everything. Idempotent. */
  close(): Promise<void>
}

/** What a turn is made of. */
export interface TurnOptions {
  /** Default: a random one. */
  readonly id?: string
  /** What the person has said; extensions may add to it. */
  readonly input?: string
  /** `task`: a regular one. `auxiliary`: a review, a compaction; it refreshes no catalogs at its start. Default `task`. */
  readonly kind?: 'task' | 'auxiliary'
  /** Servers that each step waits for, by name; those that sleep are started. */
  readonly requiredServers?: readonly string[]
  /** Plugins, by id, whose servers each step waits for. */
  readonly requiredPlugins?: readonly string[]
  /** What the thread has used so far; told to contributors before the turn is registered. */
  readonly usage?: TokenUsage
  /** Abort interrupts the turn. */
  readonly signal?: AbortSignal
}

/** One turn. Its steps see what is there when they begin. */
export interface Turn extends AsyncDisposable {
  readonly id: string
  readonly store: ExtensionStore
  /** Aborts when the turn is interrupted. */
  readonly signal: AbortSignal
  /** What extensions add to what the person said, and what they say of the turn. */
  readonly fragments: readonly ContextFragment[]
  /**
   * Captures what the next model call sees: catalogs are refreshed, servers are brought up to date, and the view is frozen. The step before is left; calls of
   * it that still run end as they would.
   * @throws {HostError} `CANCELLED` when the turn is interrupted, `HOST_CLOSED`.
   */
  step(): Promise<Step>
  /** Ends the turn as one that is done. Idempotent. */
  complete(): Promise<void>
  /** Ends the turn as one that failed; the thread lives on. */
  fail(error: unknown): Promise<void>
  /** Interrupts the turn: every wait ends, running calls are cancelled. Idempotent. */
  abort(reason?: string): Promise<void>
}

/** A tool as a step shows it: of a server, or of an extension. */
export type StepTool =
  | {
      readonly kind: 'server'
      /** Flat and unique in the step. */
      readonly name: string
      /** For models that know namespaces. */
      readonly namespaced: NamespacedName
      /** What the namespace is for. */
      readonly namespaceDescription?: string
      readonly tool: CatalogTool
    }
  | { readonly kind: 'native'; readonly name: string; readonly tool: NativeTool }

/** What one model call sees and may do. It never changes; the advertised tools and the calls come from the same view. */
export interface Step {
  readonly id: string
  readonly store: ExtensionStore
  /** Tools that models may see: not those that are hidden from them, and none that are only known from an earlier run and were refused. */
  readonly tools: readonly StepTool[]
  readonly plugins: SelectedPluginSnapshot
  /** Sections that are new or have changed since the step before, and ids of those that are gone. */
  readonly worldState: { readonly changed: readonly WorldStateSection[]; readonly removed: readonly string[] }
  readonly binding: Binding
  /** By its flat name, or by its namespaced one. */
  find(name: string | NamespacedName): StepTool | undefined
  /**
   * Calls a tool for the model: consent is asked for where it has to be, observers are told, the turn's interruption cancels it. Every end is an outcome.
   */
  call(tool: StepTool, args: JsonObject, options?: StepCallOptions): Promise<StepCallOutcome>
}

/** How a step calls. */
export interface StepCallOptions {
  /** The model's id of the call. Default: a random one. */
  readonly callId?: string
  readonly signal?: AbortSignal
  /** Longest call in all, in milliseconds; never longer than the configuration says. */
  readonly timeoutMs?: number
  onProgress?(progress: JsonObject): void
}

/** How a call of a step ended. */
export type StepCallOutcome =
  | { readonly kind: 'called'; readonly outcome: CallOutcome; readonly durationMs: number }
  | { readonly kind: 'native'; readonly text: string; readonly isError: boolean; readonly durationMs: number }
  /** Nothing was called. */
  | { readonly kind: 'blocked'; readonly reason: string }
  | { readonly kind: 'cancelled' }
