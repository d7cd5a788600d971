// Connections that differ in nothing that matters run each other's tools: the newest listing of one is the listing of all.
import type { ToolListing } from './listing.ts'

/** Told when a peer has listed something newer. */
export type PeerListener = (listing: ToolListing) => void

/** One connection's place among its peers. */
export interface LiveMembership {
  /**
   * Offers a listing. The newest ticket wins.
   * @returns what holds in the scope now: this listing, or a newer one of a peer.
   */
  publish(ticket: number, listing: ToolListing): ToolListing
  /** The connection is over, or wants to be alone. Twice is a no-op. */
  leave(): void
}

interface Scope {
  readonly members: Set<PeerListener>
  winner: { readonly ticket: number; readonly listing: ToolListing } | undefined
}

/** Connections that share a listing, by what they have in common. A scope ends with its last member. */
export class LiveScopes {
  readonly #scopes = new Map<string, Scope>()

  /** Scopes with members. */
  get size(): number {
    return this.#scopes.size
  }

  /** @param listener Told of listings of the others, never of the own ones. */
  join(key: string, listener: PeerListener): LiveMembership {
    const scope = this.#scopes.get(key) ?? { members: new Set(), winner: undefined }
    this.#scopes.set(key, scope)
    const mine: PeerListener = (listing) => listener(listing)
    scope.members.add(mine)
    return {
      publish: (ticket, listing) => publish(scope, mine, { ticket, listing }),
      leave: () => {
        scope.members.delete(mine)
        if (scope.members.size === 0 && this.#scopes.get(key) === scope) this.#scopes.delete(key)
      },
    }
  }
}

function publish(
  scope: Scope,
  mine: PeerListener,
  offer: { readonly ticket: number; readonly listing: ToolListing },
): ToolListing {
  if (!scope.members.has(mine)) return offer.listing
  if (scope.winner !== undefined && offer.ticket < scope.winner.ticket) return scope.winner.listing
  scope.winner = offer
  for (const member of scope.members) if (member !== mine) member(offer.listing)
  return offer.listing
}
