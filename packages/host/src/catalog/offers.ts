import type { Listing, ListKind, Platform, ServerSession } from '../protocol/index.ts'

/** What to have of a session. */
export interface OfferRequest {
  readonly session: ServerSession
  readonly kind: Exclude<ListKind, 'tools'>
  /** An older listing is asked for again; 0 always is. */
  readonly maxAgeMs: number
  /** For one listing, in milliseconds. */
  readonly timeoutMs: number
}

interface Known {
  /** An older session may still be asked through a binding that holds it. */
  readonly session: ServerSession
  readonly listing: Promise<Listing>
  readonly askedAtMs: number
  isPending: boolean
}

/** The last listing of each kind but tools. At most three are kept, each within the limits of a listing. */
export class Offers {
  readonly #known = new Map<ListKind, Known>()
  readonly #platform: Platform

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /**
   * The listing, from memory when it is young enough. A server that does not declare the kind is not asked: it has none.
   * @throws {HostError}
   */
  get({ session, kind, maxAgeMs, timeoutMs }: OfferRequest): Promise<Listing> {
    if (session.capabilities[kind === 'prompts' ? 'prompts' : 'resources'] === undefined)
      return Promise.resolve({ items: [], rejected: [] })
    const known = this.#known.get(kind)
    const nowMs = this.#platform.now()
    if (known?.session === session && (known.isPending || nowMs - known.askedAtMs < maxAgeMs)) return known.listing
    const mine: Known = { session, listing: session.list(kind, { timeoutMs }), askedAtMs: nowMs, isPending: true }
    this.#known.set(kind, mine)
    mine.listing.then(
      () => {
        mine.isPending = false
      },
      () => {
        if (this.#known.get(kind) === mine) this.#known.delete(kind)
      },
    )
    return mine.listing
  }

  /** Asks anew next time; all kinds by default. */
  forget(...kinds: readonly ListKind[]): void {
    if (kinds.length === 0) this.#known.clear()
    for (const kind of kinds) this.#known.delete(kind)
  }
}
