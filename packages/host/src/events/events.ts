// Everything a host tells. Kinds are `area.happened`; they are pinned, a new one is an addition and a changed one a decision.
import type { PendingQuestion, QuestionOutcome } from './question.ts'
import type { ServerStatus } from './status.ts'

/** Something that was decided about a listed item, and why. */
export interface CatalogNote {
  readonly server: string
  /** The raw name, or what stands for it; cleaned and cut. */
  readonly item: string
  /** `rejected`, `filtered`: not there. `hidden`, `omitted`: there, and not shown to all. `cleaned`, `cut`, `renamed`: there, and changed. */
  readonly kind: 'rejected' | 'filtered' | 'hidden' | 'omitted' | 'cleaned' | 'cut' | 'renamed'
  readonly reason: string
}

/** What was decided about one server when a generation was made. */
export interface PlannedServer {
  readonly server: string
  /**
   * `reuse`: the connection stays; `adopt`: a start under way is taken over; `keep-auth-failure`: a refused sign-in is not tried again;
   * `start`: a new connection, now; `defer`: a new one, when it is needed; `hold`: shown, never started; `retire`: it leaves.
   */
  readonly action: 'reuse' | 'adopt' | 'keep-auth-failure' | 'start' | 'defer' | 'hold' | 'retire'
  /** Why: a word per reason. */
  readonly because:
    | 'unchanged'
    | 'starting'
    | 'store-contended'
    | 'no-previous'
    | 'config-changed'
    | 'credentials-changed'
    | 'limits-changed'
    | 'reconnect-asked'
    | 'not-healthy'
    | 'wanted-now'
    | 'cached'
    | 'on-demand'
    | 'disabled'
    | 'config-problem'
    | 'removed'
  /** Fields of the definition that differ from the published one, sorted; never a value. */
  readonly changed: readonly string[]
}

/** How the starts of one generation ended. */
export interface StartupSummary {
  readonly generation: number
  /** Those that were kept ready come first. */
  readonly ready: readonly string[]
  readonly failed: readonly { readonly server: string; readonly code: string; readonly message: string }[]
  readonly cancelled: readonly string[]
}

/** One thing that happened in a host. */
export type HostEvent =
  | { readonly kind: 'server.state-changed'; readonly status: ServerStatus }
  /** A generation is what everybody sees from now on; told before anything else of it. */
  | { readonly kind: 'set.published'; readonly generation: number; readonly servers: readonly PlannedServer[] }
  /** Every start of a generation has ended; told also when there was none. */
  | ({ readonly kind: 'set.startup-completed' } & StartupSummary)
  /** A server that an earlier binding had to do without is ready: the next one has it. */
  | { readonly kind: 'server.joined-late'; readonly server: string; readonly generation: number }
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
  /**
   * The sign-in of a server is another one: somebody has signed in or out here, its tokens were renewed (`refreshed`), or a person has to sign in again
   * (`ended`, with the reason; nothing was deleted). Tokens are never told.
   */
  | {
      readonly kind: 'sign-in.changed'
      readonly server: string
      readonly change: 'signed-in' | 'signed-out' | 'refreshed' | 'ended'
      readonly because?: string
    }
  /** A question of a server waits for a person: it is being shown, or has been parked for `Host.answer`; told again when what is shown is parked. */
  | { readonly kind: 'question.asked'; readonly question: PendingQuestion }
  /** Told once for every question, also for those that nobody was asked. */
  | { readonly kind: 'question.settled'; readonly outcome: QuestionOutcome }

  /** A contributor of an extension failed or was late; its neighbours were not disturbed. */
  | {
      readonly kind: 'extension.failed'
      readonly extension: string
      /** What it takes part in, and the callback. */
      readonly contributor: string
      readonly callback: string
      readonly message: string
    }
  /** Something that a person should know; each text once per thread. */
  | { readonly kind: 'thread.warned'; readonly thread: string; readonly text: string }
  /** The plugins that take part in a thread are others now. */
  | { readonly kind: 'thread.plugins-changed'; readonly thread: string; readonly plugins: readonly string[] }

/** Is told of every event, in order. A throwing listener is dropped from nothing and disturbs nobody. */
export type HostEventListener = (event: HostEvent) => void
