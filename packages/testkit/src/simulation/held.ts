// What the callers of a simulated host hold: bindings, calls, and everything they wait for.
import type { Binding, CatalogTool, ServerStatus } from '@convoke/host'
import { programKey, type WantedServer } from './wanted.ts'

/** A binding, with a copy of what it was when it was taken. */
export interface HeldBinding {
  readonly number: number
  readonly binding: Binding
  readonly takenAtMs: number
  readonly tools: readonly CatalogTool[]
  readonly content: string
  readonly revision: string
  readonly statuses: readonly ServerStatus[]
  /** The configuration that was published then. */
  readonly wanted: ReadonlyMap<string, WantedServer>
}

export function holdBinding(
  binding: Binding,
  facts: Pick<HeldBinding, 'number' | 'takenAtMs' | 'wanted'>,
): HeldBinding {
  const { tools, revision, statuses } = binding
  return { ...facts, binding, tools, content: contentOf(binding), revision, statuses }
}

/** Everything that a binding shows, as text. */
export function contentOf({ tools, statuses, notes, revision }: Binding): string {
  return JSON.stringify([revision, tools, statuses, notes])
}

/** The process or the client that a server was advertised with; undefined when it was not ready. */
export function instanceOf({ statuses }: HeldBinding, server: string): string | undefined {
  const status = statuses.find(({ name }) => name === server)
  if (status?.state !== 'ready') return undefined
  const version = status.serverInfo?.['version']
  return typeof version === 'string' ? version : undefined
}

/** Does the generation behind this binding hold a connection to that program? */
export function holds({ wanted }: Pick<HeldBinding, 'wanted'>, program: string): boolean {
  for (const one of wanted.values()) if (programKey(one) === program) return true
  return false
}

/** One call and what became of it. */
export interface HeldCall {
  readonly token: number
  readonly server: string
  readonly tool: string
  readonly isIdempotent: boolean
  /** Where it has to arrive; undefined: at whatever is live when it goes out. */
  readonly instance: string | undefined
  /** The program that was configured when it was made. */
  readonly program: string
  readonly isAllowed: boolean
  readonly abort: AbortController
  /** What the caller was told. */
  told: 'nothing yet' | 'answered' | 'did not run' | 'not known'
}

/** Something that a caller waits for. */
export interface Waiting {
  readonly what: string
  readonly sinceAtMs: number
  /** By then it has to be settled. */
  readonly dueAtMs: number
}
