// Calls whose client was sent away with a question. Each waits under an unguessable handle, once, for the same client with the same request, for a limited time.
import type { JsonObject } from '../protocol.ts'
import type { Exchange, Outlet, Parking } from './exchange.ts'
import { rpcFailure } from './failures.ts'
import type { EndpointLimits } from './limits.ts'
import { INTERNAL_ERROR } from './rules.ts'
import { requestDigest, type StateSealer } from './state-sealer.ts'

interface Parked {
  readonly exchange: Exchange
  readonly expiresAtMs: number
}

/** Which of the two kinds of state this is; the rest is sealed. */
const PARKED = 'p.',
  RELAYED = 'r.'
const HANDLE_BYTES = 16

/** What a client reads about a `requestState` that is not its own, not this request's, used or too old. */
export const UNKNOWN_STATE = 'Unknown or expired requestState'

export class ParkedCalls implements Parking {
  readonly #calls = new Map<string, Parked>()
  readonly #sealer: StateSealer
  readonly #limits: EndpointLimits
  readonly #clock: { now(): number; randomBytes(count: number): Buffer }

  constructor(
    sealer: StateSealer,
    limits: EndpointLimits,
    clock: { now(): number; randomBytes(count: number): Buffer },
  ) {
    this.#sealer = sealer
    this.#limits = limits
    this.#clock = clock
  }

  get size(): number {
    return this.#calls.size
  }

  park(exchange: Exchange): string | undefined {
    if (this.#calls.size >= this.#limits.parkedCallsMax) return undefined
    const handle = this.#clock.randomBytes(HANDLE_BYTES).toString('base64url')
    this.#keep(handle, exchange)
    return PARKED + this.#sealer.seal({ handle }, bindingOf(PARKED, exchange), this.#limits.askTimeoutMs)
  }

  #keep(handle: string, exchange: Exchange): void {
    this.#calls.set(handle, { exchange, expiresAtMs: this.#clock.now() + this.#limits.askTimeoutMs })
  }

  /** @throws {WireError} for a payload that would not be taken back. */
  seal(exchange: Exchange, payload: JsonObject): string {
    const state = RELAYED + this.#sealer.seal(payload, bindingOf(RELAYED, exchange), this.#limits.askTimeoutMs)
    if (state.length <= this.#limits.requestStateBytesMax) return state
    throw rpcFailure(INTERNAL_ERROR, `The requestState has more than ${this.#limits.requestStateBytesMax} bytes`)
  }

  open(exchange: Exchange, state: string): JsonObject | undefined {
    if (!state.startsWith(RELAYED) || state.length > this.#limits.requestStateBytesMax) return undefined
    return this.#sealer.open(state.slice(RELAYED.length), bindingOf(RELAYED, exchange))
  }

  /** Is this a state that names a parked call? */
  isParked(state: unknown): state is string {
    return typeof state === 'string' && state.startsWith(PARKED)
  }

  /**
   * Gives the newcomer's outlet to the call that waits for it, and that call. The state is used up by that. Gives why it is refused otherwise: whatever is
   * wrong with a state, the refusal is the same.
   */
  resume(newcomer: Exchange, state: string, outlet: Outlet): Exchange | { readonly refused: string } {
    const unknown = { refused: UNKNOWN_STATE }
    if (state.length > this.#limits.requestStateBytesMax) return unknown
    const handle = this.#sealer.open(state.slice(PARKED.length), bindingOf(PARKED, newcomer))?.['handle']
    const parked = typeof handle === 'string' ? this.#calls.get(handle) : undefined
    if (parked === undefined || typeof handle !== 'string') return unknown
    this.#calls.delete(handle)
    const refused = parked.exchange.resume(newcomer.id, newcomer.params, outlet)
    if (refused === undefined) return parked.exchange
    // A bad answer is no answer: the client may try again with the same state.
    this.#calls.set(handle, parked)
    return { refused }
  }

  /** Cancels what has waited too long. */
  sweep(nowMs: number): void {
    for (const [handle, { exchange, expiresAtMs }] of this.#calls) {
      if (expiresAtMs > nowMs) continue
      this.#calls.delete(handle)
      exchange.cancel('The client did not come back with the input in time')
    }
  }

  /** Cancels every call that waits. */
  close(reason: string): void {
    for (const { exchange } of this.#calls.values()) exchange.cancel(reason)
    this.#calls.clear()
  }
}

function bindingOf(kind: string, { client, method, params }: Exchange): string {
  return `${kind}\n${client.principal}\n${requestDigest(method, params)}`
}
