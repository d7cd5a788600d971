// One step: the frozen view of one model call, and the calls that come of it.
import { HostError, isObject, type JsonObject } from '../base/index.ts'
import type { CatalogTool, NamespacedName } from '../catalog/index.ts'
import type {
  ApprovalDecision,
  ExtensionStore,
  NativeTool,
  SelectedPluginSnapshot,
  StepScope,
  ToolCallFacts,
} from '../extensions/index.ts'
import type { Binding } from '../set/index.ts'
import { type ConsentFacts, decideConsent } from './consent.ts'
import type { Step, StepCallOptions, StepCallOutcome, StepTool } from './interface.ts'
import type { ThreadRuntime } from './runtime.ts'
import type { WorldStateDiff } from './world-state.ts'

/** What a step is made of. */
export interface StepInit {
  readonly scope: StepScope
  readonly runtime: ThreadRuntime
  readonly binding: Binding
  readonly tools: StepTools
  readonly plugins: SelectedPluginSnapshot
  readonly worldState: WorldStateDiff
  readonly consents: Consents
  /** Aborts with the turn. */
  readonly signal: AbortSignal
  /** The turn is to end. */
  endTurn(reason: string): void
}

/** What was approved in a thread, and who is asked. */
export interface Consents {
  /** Tools that were approved for the rest of the thread, as `SERVER/TOOL`. */
  readonly remembered: Set<string>
  ask?(
    request: ToolCallFacts & { arguments: JsonObject; listed?: CatalogTool; signal: AbortSignal },
  ): Promise<ApprovalDecision>
  /** Undefined: that of the host. */
  readonly trust: ConsentFacts['trust'] | undefined
}

/** The tools of a step by their names; made once for all steps that see the same. */
export class StepTools {
  readonly all: readonly StepTool[]
  readonly #byName: ReadonlyMap<string, StepTool>
  #byNamespace: Map<string, StepTool> | undefined

  /**
   * Native tools come last: adding a server changes nothing before them.
   * @param omits Does the configuration keep the tools of a server from models?
   */
  constructor(binding: Binding, native: readonly NativeTool[], omits: (server: string) => boolean) {
    this.all = [
      ...binding.tools.flatMap((tool): StepTool[] => {
        const namespaced = tool.visibleToModel && !omits(tool.server) ? binding.namespaced(tool) : undefined
        if (namespaced === undefined) return []
        const about = binding.namespaceDescription(tool)
        const told = about === undefined ? {} : { namespaceDescription: about }
        return [{ kind: 'server', name: tool.name, namespaced, tool, ...told }]
      }),
      ...native.map((tool): StepTool => ({ kind: 'native', name: tool.name, tool })),
    ]
    this.#byName = new Map(this.all.map((tool) => [tool.name, tool]))
  }

  find(name: string | NamespacedName): StepTool | undefined {
    if (typeof name === 'string') return this.#byName.get(name)
    this.#byNamespace ??= new Map(
      this.all.flatMap((tool) => (tool.kind === 'server' ? [[keyOf(tool.namespaced), tool] as const] : [])),
    )
    return this.#byNamespace.get(keyOf(name))
  }
}

const keyOf = ({ namespace, tool }: NamespacedName): string => `${namespace} ${tool}`

/** The view of one model call. */
export class LiveStep implements Step {
  readonly id: string
  readonly #init: StepInit
  readonly #running = new Set<Promise<unknown>>()
  #left: Promise<void> | undefined

  constructor(init: StepInit) {
    this.#init = init
    this.id = init.scope.step.levelId
  }

  get store(): ExtensionStore {
    return this.#init.scope.step
  }
  get tools(): readonly StepTool[] {
    return this.#init.tools.all
  }
  get plugins(): SelectedPluginSnapshot {
    return this.#init.plugins
  }
  get worldState(): WorldStateDiff {
    return this.#init.worldState
  }
  get binding(): Binding {
    return this.#init.binding
  }

  find(name: string | NamespacedName): StepTool | undefined {
    return this.#init.tools.find(name)
  }

  call(tool: StepTool, args: JsonObject, options: StepCallOptions = {}): Promise<StepCallOutcome> {
    if (this.#left !== undefined)
      return Promise.resolve({
        kind: 'blocked',
        reason: 'the step is over; tools are called in the step that showed them',
      })
    const running = this.#call(tool, args, options).finally(() => this.#running.delete(running))
    this.#running.add(running)
    return running
  }

  /** No call begins any more; the connections are given back when those that run have ended. */
  leave(): Promise<void> {
    this.#left ??= this.#giveBack()
    return this.#left
  }

  async #giveBack(): Promise<void> {
    await Promise.allSettled(this.#running)
    await this.#init.binding[Symbol.asyncDispose]()
  }

  async #call(tool: StepTool, args: JsonObject, options: StepCallOptions): Promise<StepCallOutcome> {
    const { runtime, scope } = this.#init
    const abort = new AbortController()
    const signals = [this.#init.signal, ...(options.signal === undefined ? [] : [options.signal])]
    const onAbort = (): void => abort.abort(signals.find(({ aborted }) => aborted)?.reason)
    for (const signal of signals) {
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    }
    const facts: ToolCallFacts = {
      callId: options.callId ?? runtime.randomId(),
      tool: tool.name,
      ...(tool.kind === 'server' ? { server: tool.tool.server } : {}),
    }
    const beganAtMs = runtime.now()
    const durationMs = (): number => Math.max(0, runtime.now() - beganAtMs)
    let outcome: StepCallOutcome = { kind: 'cancelled' }
    let hasStarted = false
    try {
      const refusal = await this.#refusal(tool, { facts, args, signal: abort.signal })
      if (refusal !== undefined) {
        outcome = refusal
        return outcome
      }
      hasStarted = true
      runtime.calls.tell({
        kind: 'toolLifecycle',
        callback: 'onToolStart',
        call: (one) => one.onToolStart?.({ ...scope, ...facts }),
      })
      outcome = await this.#run(tool, args, { options, callId: facts.callId, signal: abort.signal, durationMs })
      return outcome
    } finally {
      for (const signal of signals) signal.removeEventListener('abort', onAbort)
      const told = toldOutcome(outcome)
      if (hasStarted || told === 'blocked')
        runtime.calls.tell({
          kind: 'toolLifecycle',
          callback: 'onToolFinish',
          call: (one) => one.onToolFinish?.({ ...scope, ...facts, outcome: told, durationMs: durationMs() }),
        })
    }
  }

  async #run(tool: StepTool, args: JsonObject, how: RunHow): Promise<StepCallOutcome> {
    const { options, callId, signal, durationMs } = how
    if (signal.aborted) return { kind: 'cancelled' }
    if (tool.kind === 'native') return runNative(tool.tool, args, how)
    const { timeoutMs, onProgress } = options
    const outcome = await this.#init.binding.call(tool.tool, args, {
      callId,
      signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(onProgress === undefined ? {} : { onProgress }),
    })
    return outcome.kind === 'cancelled' ? { kind: 'cancelled' } : { kind: 'called', outcome, durationMs: durationMs() }
  }

  /** Why nothing is called; undefined: it may be. */
  async #refusal(
    tool: StepTool,
    asked: { readonly facts: ToolCallFacts; readonly args: JsonObject; readonly signal: AbortSignal },
  ): Promise<StepCallOutcome | undefined> {
    const { consents } = this.#init
    const remembered = rememberedAs(tool)
    const consent = decideConsent(this.#consentFacts(tool, consents.remembered.has(remembered)))
    if (consent.kind === 'allowed') return undefined
    if (consent.kind === 'denied') return { kind: 'blocked', reason: consent.because }
    const decision = await this.#ask(tool, asked)
    if (asked.signal.aborted) return { kind: 'cancelled' }
    switch (decision.kind) {
      case 'approved':
        return undefined
      case 'approved-for-thread':
        consents.remembered.add(remembered)
        return undefined
      case 'denied':
        return { kind: 'blocked', reason: decision.reason ?? 'the call was not approved' }
      case 'aborted':
        this.#init.endTurn('a person ended it when asked for a consent')
        return { kind: 'cancelled' }
    }
  }

  #consentFacts(tool: StepTool, isRemembered: boolean): ConsentFacts {
    const { runtime, consents } = this.#init
    if (tool.kind === 'native') {
      const trust = consents.trust ?? runtime.trust('')
      return { mode: tool.tool.asksForApproval === true ? 'writes' : 'approve', hints: undefined, trust, isRemembered }
    }
    const { server, approvalMode, annotations } = tool.tool
    return {
      mode: approvalMode,
      hints: hintsOf(annotations, runtime.definition(server)?.trustAnnotations === true),
      trust: consents.trust ?? runtime.trust(server),
      isRemembered,
    }
  }

  /** Reviewers first, then whoever the thread asks. */
  async #ask(
    tool: StepTool,
    { facts, args, signal }: { readonly facts: ToolCallFacts; readonly args: JsonObject; readonly signal: AbortSignal },
  ): Promise<ApprovalDecision> {
    const { runtime, scope, consents } = this.#init
    const request = {
      ...facts,
      arguments: args,
      signal,
      ...(tool.kind === 'server' ? { listed: tool.tool } : {}),
    }
    try {
      const reviewed = await runtime.calls.first<'approvalReview', ApprovalDecision>({
        kind: 'approvalReview',
        callback: 'review',
        signal,
        call: (one) => one.review({ ...scope, ...request }),
      })
      if (reviewed !== undefined) return reviewed
      if (consents.ask === undefined)
        return { kind: 'denied', reason: 'it needs a consent, and there is nobody to ask' }
      return await consents.ask(request)
    } catch (error) {
      const why = HostError.is(error) && error.code === 'CANCELLED' ? undefined : 'asking for the consent failed'
      return { kind: 'denied', ...(why === undefined ? {} : { reason: why }) }
    }
  }
}

interface RunHow {
  readonly options: StepCallOptions
  readonly callId: string
  readonly signal: AbortSignal
  durationMs(): number
}

async function runNative(tool: NativeTool, args: JsonObject, how: RunHow): Promise<StepCallOutcome> {
  const { callId, signal, durationMs } = how
  try {
    const { text, isError = false } = await tool.run(args, { callId, signal })
    return { kind: 'native', text, isError, durationMs: durationMs() }
  } catch (error) {
    if (signal.aborted) return { kind: 'cancelled' }
    const text = error instanceof Error ? error.message : String(error)
    return { kind: 'native', text, isError: true, durationMs: durationMs() }
  }
}

/** Hints that make a call less careful count only where they are believed; those that make it more so always do. */
function hintsOf(annotations: JsonObject | undefined, areBelieved: boolean): ConsentFacts['hints'] {
  if (!isObject(annotations)) return undefined
  const { readOnlyHint, destructiveHint, openWorldHint } = annotations
  if (!areBelieved) return destructiveHint === true ? { destructive: true } : undefined
  return {
    ...(typeof readOnlyHint === 'boolean' ? { readOnly: readOnlyHint } : {}),
    ...(typeof destructiveHint === 'boolean' ? { destructive: destructiveHint } : {}),
    ...(typeof openWorldHint === 'boolean' ? { openWorld: openWorldHint } : {}),
  }
}

function rememberedAs(tool: StepTool): string {
  return tool.kind === 'native' ? `/${tool.name}` : `${tool.tool.server}/${tool.tool.rawName}`
}

function toldOutcome(outcome: StepCallOutcome): 'completed' | 'blocked' | 'failed' | 'cancelled' {
  switch (outcome.kind) {
    case 'blocked':
    case 'cancelled':
      return outcome.kind
    case 'native':
      return outcome.isError ? 'failed' : 'completed'
    case 'called':
      return outcome.outcome.kind === 'ok' ? 'completed' : 'failed'
  }
}
