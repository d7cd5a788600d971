// What the servers know of each call, kept by themselves: the truth against which the host's word is held.

/** One arrival of a call at a server that took it on. */
export interface Arrival {
  /** The process or the HTTP client of the host that it came from. */
  readonly instance: string
  readonly tool: string
  readonly atMs: number
}

/** What the servers know of one call. */
export interface CallRecord {
  readonly arrivals: Arrival[]
  /** How often the tool was carried out. */
  ran: number
  /** How often an answer was put on the wire. */
  answered: number
  /** What the host answered to the question that the server asked for it. */
  reply?: unknown
}

/** The calls of one run, by the token that each carries in its arguments. */
export class Ledger {
  readonly #records = new Map<number, CallRecord>()
  /** Told of every arrival; what it returns is what is wrong with it. */
  onArrival: (token: number, arrival: Arrival) => void = () => {}

  of(token: number): CallRecord {
    let record = this.#records.get(token)
    if (record === undefined) this.#records.set(token, (record = { arrivals: [], ran: 0, answered: 0 }))
    return record
  }

  arrived(token: number, arrival: Arrival): void {
    this.of(token).arrivals.push(arrival)
    this.onArrival(token, arrival)
  }

  /** Nobody asks about it any more. */
  forget(token: number): void {
    this.#records.delete(token)
  }
}
