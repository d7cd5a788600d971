// Everything a host tells. Kinds are `area.happened`; they are pinned, a new one is an addition and a changed one a decision.
import type { PendingQuestion, QuestionOutcome } from './question.ts'
import type { ServerStatus } from './status.ts'

/** Something that was decided about a listed item, and why. */
export interface CatalogNote {
  readonly server: string
  /** The raw name, or what stands for it; cleaned and cut. */
  readonly item: string
  readonly kind: 'rejected' | 'filtered' | 'cleaned' | 'cut'
  readonly reason: string
}

/** One thing that happened in a host. */
export type HostEvent =
  | { readonly kind: 'server.state-changed'; readonly status: ServerStatus }
  /** A line on stdout that is no JSON-RPC. Told for the first one of a process; later ones only count. */
  | { readonly kind: 'server.noise'; readonly server: string; readonly text: string }
  | {
      readonly kind: 'server.log'
      readonly server: string
      readonly level: string
      readonly logger?: string
      readonly data: unknown
    }
  /** A process that an earlier host left behind was ended. */
  | { readonly kind: 'server.reaped'; readonly pid: number; readonly command: string }
  /** What was left out, cleaned or cut in a listing, each with its reason. */
  | { readonly kind: 'tool-catalog.noted'; readonly server: string; readonly notes: readonly CatalogNote[] }
  | { readonly kind: 'tool-catalog.changed'; readonly server: string; readonly revision: string }
  | { readonly kind: 'resource-catalog.changed'; readonly server: string }
  | { readonly kind: 'prompt-catalog.changed'; readonly server: string }
  | { readonly kind: 'resource.updated'; readonly server: string; readonly uri: string }
  /** A question of a server waits for a person: it is being shown, or has been parked for `Host.answer`; told again when what is shown is parked. */
  | { readonly kind: 'question.asked'; readonly question: PendingQuestion }
  /** Told once for every question, also for those that nobody was asked. */
  | { readonly kind: 'question.settled'; readonly outcome: QuestionOutcome }

/** Is told of every event, in order. A throwing listener is dropped from nothing and disturbs nobody. */
export type HostEventListener = (event: HostEvent) => void
