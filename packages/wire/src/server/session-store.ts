// The sessions of one HTTP endpoint. An id alone opens nothing: the owner is compared on every way in, and a foreign session looks like none.
import { isLoopback } from './addresses.ts'
import type { HttpSession } from './legacy-session.ts'
import type { EndpointLimits } from './limits.ts'

export class SessionStore {
  readonly #sessions = new Map<string, HttpSession>()
  /** Sessions by address, loopback apart: there the address says nothing. */
  readonly #perAddress = new Map<string, number>()
  readonly #limits: EndpointLimits
  readonly #onClosed: (session: HttpSession) => void

  constructor(limits: EndpointLimits, onClosed: (session: HttpSession) => void) {
    this.#limits = limits
    this.#onClosed = onClosed
  }

  get size(): number {
    return this.#sessions.size
  }

  values(): Iterable<HttpSession> {
    return this.#sessions.values()
  }

  /** Why there can be no further session from this address now; undefined: there can. */
  fullFor(address: string): string | undefined {
    const { sessionsMax, sessionsPerAddressMax } = this.#limits
    if (this.#sessions.size >= sessionsMax) return `More than ${sessionsMax} sessions`
    if ((this.#perAddress.get(address) ?? 0) >= sessionsPerAddressMax)
      return `More than ${sessionsPerAddressMax} sessions from one address`
    return undefined
  }

  add(session: HttpSession): void {
    this.#sessions.set(session.id, session)
    this.#count(session.address, 1)
  }

  #count(address: string, change: number): void {
    if (isLoopback(address)) return
    const count = (this.#perAddress.get(address) ?? 0) + change
    if (count > 0) this.#perAddress.set(address, count)
    else this.#perAddress.delete(address)
  }

  /** The session of that id, if it belongs to `principal`. */
  find(id: string | undefined, principal: string, nowMs: number): HttpSession | undefined {
    const session = id === undefined ? undefined : this.#sessions.get(id)
    if (session === undefined || session.principal !== principal) return undefined
    session.lastSeenMs = nowMs
    return session
  }

  close(session: HttpSession, reason: string): void {
    if (!this.#sessions.delete(session.id)) return
    this.#count(session.address, -1)
    session.close(reason)
    this.#onClosed(session)
  }

  /** Closes what nobody uses any more. */
  sweep(nowMs: number): void {
    for (const session of [...this.#sessions.values()]) {
      session.sweep(nowMs)
      const used = session.inFlight.size > 0 || session.hasStream
      if (used) session.lastSeenMs = nowMs
      else if (nowMs - session.lastSeenMs > this.#limits.sessionIdleMs) this.close(session, 'The session was idle')
    }
  }

  closeAll(reason: string): void {
    for (const session of [...this.#sessions.values()]) this.close(session, reason)
  }
}
