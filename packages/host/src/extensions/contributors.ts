// What an extension may take part in. Every callback may be left out; contributors are called in the order of their registration, and one that throws is named
// in an event and stops nobody.
import type { JsonObject } from '../base/index.ts'
import type { CatalogTool } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { ResourceClient } from './resource-client.ts'
import type { SelectedPluginSnapshot } from './selected-plugins.ts'
import type { ExtensionStore } from './stores.ts'

/** Settings of a thread that extensions are told of. Values of extensions stand under their ids. */
export interface ExtensionConfiguration {
  /** Do plugins take part in the thread? */
  readonly pluginsEnabled: boolean
  /** What the embedder has for single extensions, by their ids. */
  readonly extensions: Readonly<Record<string, unknown>>
}

/** Counts of what an extension did, for dashboards; names are `area.thing`. */
export interface ExtensionMetrics {
  count(name: string, by?: number): void
}

/** The stores of a thread. */
export interface ThreadScope {
  readonly session: ExtensionStore
  readonly thread: ExtensionStore
}

/** The stores of a turn. */
export interface TurnScope extends ThreadScope {
  readonly turn: ExtensionStore
}

/** The stores of a step. */
export interface StepScope extends TurnScope {
  readonly step: ExtensionStore
}

/** What a thread begins with. */
export interface ThreadStartInput extends ThreadScope {
  readonly configuration: ExtensionConfiguration
  /** Resources of the servers of the host. */
  readonly resources: ResourceClient | undefined
  readonly metrics: ExtensionMetrics
  /** Warnings for people; each text is told once per thread. */
  warn(text: string): void
}

/** Follows threads. */
export interface ThreadLifecycleContributor {
  onThreadStart?(input: ThreadStartInput): void | Promise<void>
  /** An earlier thread goes on in this process; comes after `onThreadStart`. */
  onThreadResume?(input: ThreadScope): void | Promise<void>
  /** No turn runs. */
  onThreadIdle?(
    input: ThreadScope & { readonly cause: 'turn-ended' | 'turn-aborted' | 'turn-failed' },
  ): void | Promise<void>
  onThreadStop?(input: ThreadScope): void | Promise<void>
}

/** When something runs at the start of a turn: before the turn can be seen and interrupted (it has to be quick), or as its first work. */
export type TurnStartPhase = 'before-registration' | 'task-start'

/** What a turn begins with. */
export interface TurnStartInput extends TurnScope {
  readonly turnId: string
  readonly phase: TurnStartPhase
  /** Aborts when the turn is interrupted. Never in the phase `before-registration`. */
  readonly signal: AbortSignal
  /** What the thread has used so far; only in the phase `before-registration`. */
  readonly usage?: TokenUsage
}

/** Before each step. */
export interface CatalogRefreshInput extends TurnScope {
  readonly turnId: string
  readonly signal: AbortSignal
}

/** Follows turns. */
export interface TurnLifecycleContributor {
  /** Default `before-registration`. Asked at each turn. */
  turnStartPhase?(thread: ExtensionStore): TurnStartPhase
  /** Are the servers brought up to date before `onTurnStart` of the phase `task-start`? Default false. */
  requiresRuntime?(thread: ExtensionStore): boolean
  onTurnStart?(input: TurnStartInput): void | Promise<void>
  onTurnStop?(input: TurnScope & { readonly turnId: string }): void | Promise<void>
  onTurnAbort?(input: TurnScope & { readonly turnId: string; readonly reason: string }): void | Promise<void>
  onTurnError?(input: TurnScope & { readonly turnId: string; readonly error: unknown }): void | Promise<void>
  /** Looks again at what a remote side lists. `changed`: what is contributed is another now. Default `unchanged`. */
  refreshCatalogForStep?(input: CatalogRefreshInput): Promise<'changed' | 'unchanged'>
}

/** Hears of changed settings, at once and without waiting for anything. */
export interface ConfigurationContributor {
  onConfigurationChanged(
    input: ThreadScope & { readonly previous: ExtensionConfiguration; readonly next: ExtensionConfiguration },
  ): void
}

/** A text that goes before the model's input. */
export interface ContextFragment {
  /** Fragments of one slot stand together, in the order of their contributors. */
  readonly slot: string
  readonly text: string
}

/** Something that the model is told of the world, anew only when it has changed. */
export interface WorldStateSection {
  /** Names the section from step to step. */
  readonly id: string
  readonly text: string
}

/** Tells the model things. */
export interface ContextContributor {
  threadContext?(input: ThreadScope): readonly ContextFragment[] | Promise<readonly ContextFragment[]>
  turnContext?(input: TurnScope): readonly ContextFragment[] | Promise<readonly ContextFragment[]>
  worldState?(
    input: StepScope & { readonly plugins: SelectedPluginSnapshot },
  ): readonly WorldStateSection[] | Promise<readonly WorldStateSection[]>
}

/** What a contributor says of servers and connectors. Later words for the same server win. */
export type ServerContribution =
  | { readonly kind: 'set'; readonly definition: ServerDefinition }
  | { readonly kind: 'remove'; readonly server: string }
  /** Connectors of hosted servers belong to a plugin. It starts nothing. */
  | {
      readonly kind: 'plugin-connectors'
      readonly pluginId: string
      /** For people and models. */
      readonly pluginName: string
      readonly connectorIds: readonly string[]
    }

/** A plugin of this machine that a person or an environment has selected for a thread. */
export interface SelectedPlugin {
  readonly pluginId: string
  readonly rootId: string
  /** What it brings; asked for only where servers are contributed, not for the snapshot. */
  load(options: { readonly signal: AbortSignal }): Promise<SelectedPluginContent>
}

/** What a selected plugin brings. */
export interface SelectedPluginContent {
  readonly displayName: string
  readonly connectorIds: readonly string[]
  readonly definitions: readonly ServerDefinition[]
}

/** Why servers are contributed now. */
export interface ServerContributionInput extends ThreadScope {
  readonly configuration: ExtensionConfiguration
  /** The account or its token is another one than that of the published servers. */
  readonly authChanged: boolean
  readonly signal: AbortSignal
}

/** Brings servers, and says which plugins things belong to. */
export interface ServerContributor {
  /** The account is another one, or its token: what was learned for the old one is dropped at once, before anything is waited for. */
  onAuthChanged?(input: ThreadScope): void
  contribute?(input: ServerContributionInput): readonly ServerContribution[] | Promise<readonly ServerContribution[]>
  selectedPlugins?(input: ServerContributionInput): readonly SelectedPlugin[] | Promise<readonly SelectedPlugin[]>
}

/** Adds to what a person has said. */
export interface TurnInputContributor {
  turnInput(
    input: TurnScope & { readonly text: string },
  ): readonly ContextFragment[] | Promise<readonly ContextFragment[]>
}

/** A tool of an extension: it runs in this process, and no server is behind it. */
export interface NativeTool {
  /** Charset `[A-Za-z0-9_-]`, at most 64 characters; unique among native tools. */
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
  /** It may run beside other calls. Default false. */
  readonly parallelToolCalls?: boolean
  /** Does it need a person's consent? Default false. */
  readonly asksForApproval?: boolean
  /** Rejecting makes the call fail; the text is told to the model. */
  run(args: JsonObject, context: { readonly callId: string; readonly signal: AbortSignal }): Promise<NativeToolResult>
}

/** What a native tool answers. */
export interface NativeToolResult {
  /** For the model. */
  readonly text: string
  readonly isError?: boolean
}

/** Brings tools that run in this process. */
export interface ToolContributor {
  tools(input: ThreadScope): readonly NativeTool[] | Promise<readonly NativeTool[]>
}

/** One call of a tool, as observers see it: never its arguments or its result. */
export interface ToolCallFacts {
  readonly callId: string
  /** The flat name. */
  readonly tool: string
  /** Absent: a native tool. */
  readonly server?: string
}

/** Observes calls; decides nothing. */
export interface ToolLifecycleContributor {
  onToolStart?(input: StepScope & ToolCallFacts): void | Promise<void>
  onToolFinish?(
    input: StepScope &
      ToolCallFacts & {
        readonly outcome: 'completed' | 'blocked' | 'failed' | 'cancelled'
        readonly durationMs: number
      },
  ): void | Promise<void>
}

/** A call that needs consent. */
export interface ApprovalRequest extends ToolCallFacts {
  readonly arguments: JsonObject
  /** What is known of the tool; absent for a native one. */
  readonly listed?: CatalogTool
  readonly signal: AbortSignal
}

/** What a reviewer decides. */
export type ApprovalDecision =
  | { readonly kind: 'approved' }
  /** For the rest of the thread, this tool of this server is not asked about again. */
  | { readonly kind: 'approved-for-thread' }
  | { readonly kind: 'denied'; readonly reason?: string }
  /** The turn ends. */
  | { readonly kind: 'aborted' }

/** May decide before a person is asked. The first contributor that decides, decides. */
export interface ApprovalReviewContributor {
  review(input: StepScope & ApprovalRequest): ApprovalDecision | undefined | Promise<ApprovalDecision | undefined>
}

/** Tokens of one model call or of several; as the provider counts. */
export interface TokenUsage {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

/** Hears how many tokens a model call took, before anybody else is told. */
export interface TokenUsageContributor {
  onTokenUsage(input: TurnScope & { readonly last: TokenUsage; readonly total: TokenUsage }): void | Promise<void>
}

/** Every kind of contributor, by the name under which it is registered. */
export interface ContributorKinds {
  readonly threadLifecycle: ThreadLifecycleContributor
  readonly turnLifecycle: TurnLifecycleContributor
  readonly configuration: ConfigurationContributor
  readonly context: ContextContributor
  readonly servers: ServerContributor
  readonly turnInput: TurnInputContributor
  readonly tools: ToolContributor
  readonly toolLifecycle: ToolLifecycleContributor
  readonly approvalReview: ApprovalReviewContributor
  readonly tokenUsage: TokenUsageContributor
}

/** The name of a kind of contributor. */
export type ContributorKind = keyof ContributorKinds
