// Which requests are at which server, so that what a server tells of no call in particular reaches nobody whom it does not concern.
import type { Client, Exchange } from '@convoke/wire/server'

export class InFlight {
  readonly #byServer = new Map<string, Set<Exchange>>()
  #elsewhere = 0

  enter(server: string, exchange: Exchange): void {
    const exchanges = this.#byServer.get(server)
    if (exchanges === undefined) this.#byServer.set(server, new Set([exchange]))
    else exchanges.add(exchange)
  }

  leave(server: string, exchange: Exchange): void {
    this.#byServer.get(server)?.delete(exchange)
  }

  /** A request of which it is not known at which server it is. */
  enterSomewhere(): void {
    this.#elsewhere++
  }

  leaveSomewhere(): void {
    this.#elsewhere--
  }

  /** Whom the requests at a server belong to: the one request, the one session, nobody, or several. */
  at(
    server: string,
  ):
    | { readonly kind: 'none' | 'several' }
    | { readonly kind: 'one'; readonly exchange: Exchange }
    | { readonly kind: 'client'; readonly client: Client } {
    if (this.#elsewhere > 0) return { kind: 'several' }
    const exchanges = this.#byServer.get(server)
    if (exchanges === undefined || exchanges.size === 0) return { kind: 'none' }
    const [first, ...others] = exchanges
    if (others.length === 0 && first !== undefined) return { kind: 'one', exchange: first }
    const same =
      first !== undefined && first.client.era === 'legacy' && others.every(({ client }) => client === first.client)
    return same ? { kind: 'client', client: first.client } : { kind: 'several' }
  }
}
