// The holders of one host: one per grant, whatever number of connections speak with it.
import type { ServerDefinition } from '../config/index.ts'
import type { KeyValueStore } from '../store/index.ts'
import type { SignInReason } from './decide.ts'
import { GrantHolder, type GrantHolderOptions, type RenewalStep, type TokenRequests } from './grant-holder.ts'
import { newestOf } from './machine-sign-in.ts'
import type { SignInEntry, StoreKind } from './sign-in-index.ts'

/** What {@link GrantHolders} are made of. */
export interface GrantHoldersOptions {
  readonly port: Pick<GrantHolderOptions, 'dateMs' | 'setTimer'>
  open(kind: StoreKind): Promise<KeyValueStore>
  requests(newest: () => ServerDefinition): TokenRequests
  onChange(server: string, change: 'refreshed' | SignInReason): void
  onStep?: ((step: RenewalStep) => void) | undefined
}

/** Gives out the one holder of each grant. */
export class GrantHolders {
  readonly #options: GrantHoldersOptions
  /** By record and grant. */
  readonly #holders = new Map<string, GrantHolder>()
  /** Sign-ins that have just ended, by server. */
  readonly #answering = new Map<string, Promise<void>>()
  /** They still renew for somebody. */
  readonly #retired = new Set<GrantHolder>()
  /** What the entries say since they were used last, by server. */
  readonly #newest = new Map<string, ServerDefinition>()

  constructor(options: GrantHoldersOptions) {
    this.#options = options
  }

  /** From now on, renewals for this server go by these settings, also those of holders that are there already. */
  follow(definition: ServerDefinition): void {
    this.#newest.set(definition.name, definition)
  }

  /** That of the grant of the entry. */
  of(definition: ServerDefinition, entry: SignInEntry): GrantHolder {
    const key = keyOf(entry)
    const known = this.#holders.get(key)
    if (known !== undefined) return known
    const { port, onStep } = this.#options
    const { recordId, grantId, store, server } = entry
    const holder = new GrantHolder({
      ...{ server, recordId, grantId },
      open: () => this.#options.open(store),
      requests: this.#options.requests(() => newestOf(definition, this.#newest.get(definition.name))),
      dateMs: () => port.dateMs(),
      setTimer: (callback, ms) => port.setTimer(callback, ms),
      ...(onStep === undefined ? {} : { onStep }),
      onChange: (change) => {
        if (change !== 'refreshed') void this.#follow(server.name, holder.whenAnswered())
        this.#options.onChange(server.name, change)
      },
    })
    this.#holders.set(key, holder)
    return holder
  }

  /**
   * Whoever plans connections anew because a sign-in has ended waits until its calls have been told why: without their connection they would only learn that it
   * was lost. Undefined: nobody has to wait. Never rejects.
   */
  whenAnswered(server: string): Promise<void> | undefined {
    return this.#answering.get(server)
  }

  async #follow(server: string, answered: Promise<void>): Promise<void> {
    this.#answering.set(server, answered)
    await answered
    if (this.#answering.get(server) === answered) this.#answering.delete(server)
  }

  /** Another grant has taken its place, or none. What it has sent is answered all the same. */
  retire(entry: Pick<SignInEntry, 'recordId' | 'grantId'>): void {
    const key = keyOf(entry)
    const holder = this.#holders.get(key)
    if (holder === undefined) return
    this.#holders.delete(key)
    this.#retired.add(holder)
    // What it begins after that finds another grant in the store, and sends nothing.
    void holder.whenIdle().then(() => this.#retired.delete(holder))
  }

  /** Waits for renewals that are under way, so that no answer is lost. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#holders.values(), ...this.#retired].map((holder) => holder.close()))
  }
}

function keyOf({ recordId, grantId }: Pick<SignInEntry, 'recordId' | 'grantId'>): string {
  return `${recordId} ${grantId}`
}
