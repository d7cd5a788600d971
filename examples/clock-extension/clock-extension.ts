/**
 * An extension that takes part in three ways: it brings a tool that runs in this process, tells the model the time of day when that has changed, and counts what
 * is called. What it knows of a thread stands in the store of the thread, because one extension serves all threads.
 */
import {
  type ContextContributor,
  type Extension,
  type NativeTool,
  StoreKey,
  type ThreadScope,
  type ToolContributor,
  type ToolLifecycleContributor,
} from '@convoke/host/extension'

/** How often each tool was called in a thread, by its flat name. */
export const CALL_COUNTS: StoreKey<Map<string, number>> = new StoreKey('clock: call counts')

/** How the extension is made. */
export interface ClockOptions {
  /** Now, in milliseconds of the epoch. Default: the clock of this machine. */
  readonly now?: () => number
}

/**
 * A clock for a model.
 *
 * ```ts
 * const host = await createHost({ definitions, extensions: [clockExtension()] })
 * ```
 */
export function clockExtension({ now = Date.now }: ClockOptions = {}): Extension {
  const clock = new Clock(now)
  return {
    id: 'examples/clock',
    install(registrar) {
      registrar.register('tools', clock)
      registrar.register('context', clock)
      registrar.register('toolLifecycle', clock)
    },
  }
}

/** One object for all three: contributors are called in the order in which they were registered. */
class Clock implements ToolContributor, ContextContributor, ToolLifecycleContributor {
  readonly #now: () => number
  readonly #tools: readonly NativeTool[]

  constructor(now: () => number) {
    this.#now = now
    // Made once: steps between which nothing changed show the same list.
    this.#tools = [
      {
        name: 'clock',
        description: 'Tells the time now, as an ISO 8601 timestamp in UTC.',
        inputSchema: { type: 'object', properties: {}, additionalProperties: false },
        parallelToolCalls: true,
        run: () => Promise.resolve({ text: new Date(this.#now()).toISOString() }),
      },
    ]
  }

  tools(): readonly NativeTool[] {
    return this.#tools
  }

  worldState(): readonly { readonly id: string; readonly text: string }[] {
    const hour = new Date(this.#now()).getUTCHours()
    return [{ id: 'clock/time-of-day', text: `It is ${partOf(hour)} in UTC.` }]
  }

  onToolFinish({ thread, tool }: ThreadScope & { readonly tool: string }): void {
    const counts = thread.getOrInit(CALL_COUNTS, () => new Map())
    counts.set(tool, (counts.get(tool) ?? 0) + 1)
  }
}

function partOf(hour: number): string {
  if (hour < 6) return 'night'
  if (hour < 12) return 'morning'
  return hour < 18 ? 'afternoon' : 'evening'
}
