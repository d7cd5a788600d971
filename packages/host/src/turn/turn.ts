// One turn: its phases, its steps, its end.
import { HostError } from '../base/index.ts'
import {
  type ContextFragment,
  type ContributorCalls,
  ExtensionStore,
  type NativeTool,
  type Registered,
  SELECTED_PLUGINS,
  type TurnLifecycleContributor,
  type TurnScope,
  type WorldStateSection,
} from '../extensions/index.ts'
import type { Binding } from '../set/index.ts'
import type { Step, Turn, TurnOptions } from './interface.ts'
import type { ThreadRuntime } from './runtime.ts'
import { type Consents, LiveStep, StepTools } from './step.ts'
import type { ThreadServers } from './thread-servers.ts'
import { diffWorldState } from './world-state.ts'

/** What a turn is made of. */
export interface TurnInit {
  readonly scope: TurnScope
  readonly runtime: ThreadRuntime
  readonly servers: ThreadServers
  readonly consents: Consents
  readonly options: TurnOptions
  /** What the model was told last. */
  readonly told: { sections: readonly WorldStateSection[] }
  /** The tools of the step before, also of an earlier turn. */
  readonly toolMemory: ToolMemory
  onEnd(turn: LiveTurn, cause: 'turn-ended' | 'turn-aborted' | 'turn-failed'): void
}

/** The tools that were shown last: the same for as long as nothing changes. */
export class ToolMemory {
  #known:
    | { readonly tools: Binding['tools']; readonly native: readonly NativeTool[]; readonly made: StepTools }
    | undefined

  toolsOf(binding: Binding, native: readonly NativeTool[], omits: (server: string) => boolean): StepTools {
    const known = this.#known
    if (known !== undefined && known.tools === binding.tools && isSame(known.native, native)) return known.made
    const made = new StepTools(binding, native, omits)
    this.#known = { tools: binding.tools, native, made }
    return made
  }
}

function isSame(one: readonly NativeTool[], other: readonly NativeTool[]): boolean {
  return one.length === other.length && one.every((tool, index) => tool === other[index])
}

/** Native tools of one step; more are left out. */
const NATIVE_TOOLS_MAX = 128
const NATIVE_NAME = /^[A-Za-z0-9_-]{1,64}$/

type End = 'completed' | 'aborted' | 'failed'

/** One turn. */
export class LiveTurn implements Turn {
  readonly #init: TurnInit
  readonly #abort = new AbortController()
  #fragments: readonly ContextFragment[] = []
  #step: LiveStep | undefined
  #leaving: Promise<void> = Promise.resolve()
  #capturing: Promise<Step> | undefined
  #ending: Promise<void> | undefined
  #stopListening: () => void = () => {}

  constructor(init: TurnInit) {
    this.#init = init
  }

  get id(): string {
    return this.#init.scope.turn.levelId
  }
  get store(): ExtensionStore {
    return this.#init.scope.turn
  }
  get signal(): AbortSignal {
    return this.#abort.signal
  }
  get fragments(): readonly ContextFragment[] {
    return this.#fragments
  }

  /** Contributors that have to be quick run before anybody can see the turn. */
  async register(): Promise<void> {
    const { usage } = this.#init.options
    await this.#start('before-registration', {
      signal: NEVER,
      ...(usage === undefined ? {} : { usage }),
    })
  }

  /**
   * The first work of the turn.
   * @throws {HostError} `CANCELLED` when it is interrupted; it has ended then.
   */
  async begin(): Promise<void> {
    this.#follow(this.#init.options.signal)
    try {
      if (this.#init.options.kind !== 'auxiliary') await this.#startTask()
      this.#fragments = await this.#gatherFragments()
    } catch (error) {
      await this.abort(this.#reason)
      throw error
    }
  }

  step(): Promise<Step> {
    this.#capturing ??= this.#capture().finally(() => {
      this.#capturing = undefined
    })
    return this.#capturing
  }

  complete(): Promise<void> {
    return this.#end('completed')
  }

  fail(error: unknown): Promise<void> {
    return this.#end('failed', error)
  }

  abort(reason = 'interrupted'): Promise<void> {
    this.#abort.abort(reason)
    return this.#end('aborted', reason)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#ending ?? this.abort('disposed')
  }

  get #calls(): ContributorCalls {
    return this.#init.runtime.calls
  }

  get #reason(): string {
    const { reason } = this.#abort.signal
    return typeof reason === 'string' ? reason : 'interrupted'
  }

  #follow(signal: AbortSignal | undefined): void {
    if (signal === undefined) return
    const onAbort = (): void => void this.abort()
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    this.#stopListening = () => signal.removeEventListener('abort', onAbort)
  }

  async #startTask(): Promise<void> {
    let neededRuntime = false
    const { servers, scope } = this.#init
    try {
      for (const one of this.#phase('task-start')) {
        const needs = await this.#calls.one(one, {
          kind: 'turnLifecycle',
          callback: 'requiresRuntime',
          signal: this.signal,
          call: (contributor) => contributor.requiresRuntime?.(scope.thread) ?? false,
        })
        if (needs === true) {
          neededRuntime = true
          await servers.refreshIfDirty(this.signal)
        }
        await this.#startOne(one, 'task-start', { signal: this.signal })
      }
    } finally {
      // Also when it was interrupted: what was contributed for another account may be gone already.
      if (neededRuntime) {
        servers.requestReprojection()
        void servers.prewarm()
      }
    }
  }

  async #start(
    phase: 'before-registration',
    more: Pick<Parameters<NonNullable<TurnLifecycleContributor['onTurnStart']>>[0], 'signal' | 'usage'>,
  ): Promise<void> {
    for (const one of this.#phase(phase)) await this.#startOne(one, phase, more)
  }

  async #startOne(
    one: Registered<TurnLifecycleContributor>,
    phase: 'before-registration' | 'task-start',
    more: Pick<Parameters<NonNullable<TurnLifecycleContributor['onTurnStart']>>[0], 'signal' | 'usage'>,
  ): Promise<void> {
    const { scope } = this.#init
    await this.#calls.one(one, {
      kind: 'turnLifecycle',
      callback: 'onTurnStart',
      signal: more.signal,
      call: (contributor) => contributor.onTurnStart?.({ ...scope, turnId: this.id, phase, ...more }),
    })
  }

  /** Asked anew at each turn. */
  #phase(wanted: 'before-registration' | 'task-start'): readonly Registered<TurnLifecycleContributor>[] {
    const { thread } = this.#init.scope
    return this.#calls.all('turnLifecycle').filter(({ contributor }) => {
      try {
        return (contributor.turnStartPhase?.(thread) ?? 'before-registration') === wanted
      } catch {
        return wanted === 'before-registration'
      }
    })
  }

  async #gatherFragments(): Promise<readonly ContextFragment[]> {
    const { scope, options } = this.#init
    const signal = this.signal
    const said = await this.#calls.gather<'context', readonly ContextFragment[]>({
      kind: 'context',
      callback: 'turnContext',
      signal,
      call: (one) => one.turnContext?.(scope),
    })
    const text = options.input ?? ''
    const added = await this.#calls.gather<'turnInput', readonly ContextFragment[]>({
      kind: 'turnInput',
      callback: 'turnInput',
      signal,
      call: (one) => one.turnInput({ ...scope, text }),
    })
    return inSlots([...said, ...added].flat())
  }

  async #capture(): Promise<Step> {
    const { servers, runtime, options, scope, toolMemory, told, consents } = this.#init
    this.#assertRunning()
    await this.#refreshCatalogs()
    await servers.refreshIfDirty(this.signal)
    const { requiredServers, requiredPlugins } = options
    const binding = await runtime.bind({
      perspective: servers.perspective,
      signal: this.signal,
      ...(requiredServers === undefined ? {} : { requiredServers }),
      ...(requiredPlugins === undefined ? {} : { requiredPlugins }),
    })
    try {
      const { plugins } = servers
      const step = new ExtensionStore('step', runtime.randomId())
      for (const store of [scope.turn, step]) store.insert(SELECTED_PLUGINS, plugins)
      const native = await this.#nativeTools()
      const sections = await this.#sections({ ...scope, step }, plugins)
      this.#assertRunning()
      const made = new LiveStep({
        scope: { ...scope, step },
        runtime,
        binding,
        tools: toolMemory.toolsOf(
          binding,
          native,
          (server) => runtime.definition(server)?.omitToolsFrom.includes('model') === true,
        ),
        plugins,
        worldState: diffWorldState(told.sections, sections),
        consents,
        signal: this.signal,
        endTurn: (reason) => void this.abort(reason),
      })
      told.sections = sections
      this.#leave()
      this.#step = made
      return made
    } catch (error) {
      await binding[Symbol.asyncDispose]()
      throw error
    }
  }

  async #refreshCatalogs(): Promise<void> {
    const { scope, servers } = this.#init
    const { signal, id: turnId } = this
    for (const one of this.#calls.all('turnLifecycle')) {
      if (one.contributor.refreshCatalogForStep === undefined) continue
      const refreshed = await this.#calls.one(one, {
        kind: 'turnLifecycle',
        callback: 'refreshCatalogForStep',
        signal,
        call: (contributor) => contributor.refreshCatalogForStep?.({ ...scope, turnId, signal }),
      })
      if (refreshed === 'changed') servers.requestReprojection()
    }
  }

  async #nativeTools(): Promise<readonly NativeTool[]> {
    if (!this.#calls.has('tools')) return NO_TOOLS
    const { scope } = this.#init
    const said = await this.#calls.gather<'tools', readonly NativeTool[]>({
      kind: 'tools',
      callback: 'tools',
      signal: this.signal,
      call: (one) => one.tools(scope),
    })
    const byName = new Map<string, NativeTool>()
    // Flat names of servers hold two underscores, so that none of these is one of those.
    for (const tool of said.flat())
      if (NATIVE_NAME.test(tool.name) && !tool.name.includes('__') && !byName.has(tool.name))
        byName.set(tool.name, tool)
    return [...byName.values()].slice(0, NATIVE_TOOLS_MAX)
  }

  async #sections(
    scope: TurnScope & { readonly step: ExtensionStore },
    plugins: Step['plugins'],
  ): Promise<readonly WorldStateSection[]> {
    if (!this.#calls.has('context')) return []
    const said = await this.#calls.gather<'context', readonly WorldStateSection[]>({
      kind: 'context',
      callback: 'worldState',
      signal: this.signal,
      call: (one) => one.worldState?.({ ...scope, plugins }),
    })
    return said.flat()
  }

  #assertRunning(): void {
    if (this.#ending === undefined && !this.signal.aborted) return
    throw new HostError('CANCELLED', `The turn has ended (${this.signal.aborted ? this.#reason : 'done'})`)
  }

  /** The step before goes on until its calls have ended. */
  #leave(): void {
    const step = this.#step
    if (step === undefined) return
    this.#step = undefined
    this.#leaving = Promise.allSettled([this.#leaving, step.leave()]).then(() => {})
  }

  #end(end: End, detail?: unknown): Promise<void> {
    this.#ending ??= this.#finish(end, detail)
    return this.#ending
  }

  async #finish(end: End, detail: unknown): Promise<void> {
    this.#stopListening()
    if (end !== 'completed') this.#abort.abort(end)
    const { scope, onEnd } = this.#init
    const said = { ...scope, turnId: this.id }
    this.#leave()
    await this.#capturing?.catch(() => {})
    this.#leave() // one that was being captured
    await this.#leaving
    await this.#calls.gather({
      kind: 'turnLifecycle',
      callback: CALLBACKS[end],
      call: async (one) => {
        if (end === 'completed') await one.onTurnStop?.(said)
        else if (end === 'aborted') await one.onTurnAbort?.({ ...said, reason: String(detail) })
        else await one.onTurnError?.({ ...said, error: detail })
      },
    })
    onEnd(this, CAUSES[end])
  }
}

const NEVER: AbortSignal = new AbortController().signal
const NO_TOOLS: readonly NativeTool[] = []
const CALLBACKS: Readonly<Record<End, string>> = {
  completed: 'onTurnStop',
  aborted: 'onTurnAbort',
  failed: 'onTurnError',
}
const CAUSES = { completed: 'turn-ended', aborted: 'turn-aborted', failed: 'turn-failed' } as const

/** Fragments of one slot stand together; slots in the order in which they were first named. */
export function inSlots(fragments: readonly ContextFragment[]): readonly ContextFragment[] {
  const slots = new Map<string, ContextFragment[]>()
  for (const fragment of fragments) slots.set(fragment.slot, [...(slots.get(fragment.slot) ?? []), fragment])
  return [...slots.values()].flat()
}
