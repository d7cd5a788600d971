// A fixture in a process of its own whose knobs turn, and whose numbers are read, while it runs.
import { askControl, whenSeen } from './plain-request.ts'
import type { RunningServer } from './runners.ts'

/** Such a fixture, running until it is closed or disposed of, or this process ends. */
export interface Controlled<Knobs, Stats> extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  readonly stderrTail: string
  readonly exited: Promise<void>
  /** Turns knobs; holds for every request that comes after it resolved. */
  set(knobs: Knobs): Promise<void>
  stats(): Promise<Stats>
  /**
   * Looks again until the numbers are as wanted, so that tests wait for states.
   * @throws {Error} with the last numbers, after 30 s.
   */
  whenStats(isWanted: (stats: Stats) => boolean): Promise<Stats>
  close(): Promise<void>
}

/** What all of them have in common. */
export class ControlledServer<Knobs, Stats> implements Controlled<Knobs, Stats> {
  readonly url: string
  readonly #server: RunningServer

  /** @param url Default: that of the server. */
  constructor(server: RunningServer, url: string = server.url) {
    this.#server = server
    this.url = url
  }

  get pid(): number {
    return this.#server.pid
  }

  get stderrTail(): string {
    return this.#server.stderrTail
  }

  get exited(): Promise<void> {
    return this.#server.exited
  }

  async set(knobs: Knobs): Promise<void> {
    await this.ask('set', knobs)
  }

  async stats(): Promise<Stats> {
    return (await this.ask('stats')) as Stats
  }

  whenStats(isWanted: (stats: Stats) => boolean): Promise<Stats> {
    return whenSeen(() => this.stats(), isWanted)
  }

  async close(): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Something that only this kind of fixture can do. */
  protected ask(action: string, body?: unknown): Promise<unknown> {
    return askControl(this.url, action, body)
  }
}
