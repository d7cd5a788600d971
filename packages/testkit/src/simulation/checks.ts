// The invariants: what must be true of a host after every step, whatever happened. Each has a name, which is what a failing run prints first.
import type { HostEvent, ServerStatus } from '@convoke/host'
import { contentOf, type HeldBinding } from './held.ts'
import type { Invariant } from './invariants.ts'
import { ENDING_MS_MAX, type Life } from './life.ts'
import type { ServerProcess } from './processes.ts'
import { allows, programKey, STARTUP_TIMEOUT_MS } from './wanted.ts'

/** A connection that nobody holds is closed within this time, in ms. */
const ORPHAN_MS_MAX = 8_000
/** A process that has ended is known to have within this time, in ms: others may hold its pipes. */
const NOTICE_MS_MAX = 4_000
/** A start, its end and the end of what was there before, in ms. */
const STARTING_MS_MAX = STARTUP_TIMEOUT_MS * 2 + ENDING_MS_MAX * 2

/** How often the whole content of a binding is compared, in steps: its identity is at every one. */
const CONTENT_EVERY = 16

/** Looks at everything after each step. */
export class Checks {
  readonly #life: Life
  /** Since when a client has had no owner. */
  readonly #orphans = new Map<number, number>()
  readonly #endedAtMs = new Map<string, number>()
  readonly #known = new WeakSet<HeldBinding>()
  #running = new Set<string>()
  #stepCount = 0

  constructor(life: Life) {
    this.#life = life
    life.listen((event) => this.#heard(event))
  }

  /** After every step, when all that follows at once has happened. */
  afterStep(): void {
    const { host } = this.#life
    const { statuses } = host
    this.#noteEnds()
    this.#noteHolders()
    this.#checkStatuses(statuses)
    this.#checkProcesses(statuses)
    this.#checkClients(statuses)
    this.#checkBindings()
    this.#checkWaiting()
  }

  /** Looking starts nothing: neither at once nor by what it sets in motion. */
  spawnsAndRequests(): string {
    const { processes, network, timeline } = this.#life.world
    return `${processes.launches} starts, ${network.requests} requests, ${timeline.timerCount} timers`
  }

  /** At the moment in which the close has settled. */
  atEnd(): void {
    const { timersLeft } = this.#life.world.timeline
    if (timersLeft.length > 0)
      this.#violate('nothing is left after the close', `${timersLeft.length} timers: ${timersLeft.join('; ')}`)
  }

  /** After the host has closed, and what the world still had to do has been done. */
  afterEnd(): void {
    const { world } = this.#life
    const name = 'nothing is left after the close'
    const left = world.processes.running.filter(({ facts }) => facts.pid !== world.hostPid)
    if (left.length > 0)
      this.#violate('no process is left after the close', left.map(({ facts }) => facts.pid).join(', '))
    if (world.network.clients.length > 0)
      this.#violate(name, `HTTP clients ${world.network.clients.map(({ number }) => number).join(', ')}`)
    if (world.network.exchangeCount > 0) this.#violate(name, `${world.network.exchangeCount} HTTP exchanges`)
    if (world.exitListenerCount > 0) this.#violate(name, `${world.exitListenerCount} exit listeners`)
    const leases = world.files.paths.filter((path) => path.includes('/leases/'))
    if (leases.length > 0 && !world.isDiskBroken) this.#violate(name, `lease files ${leases.join(', ')}`)
    for (const { what } of this.#life.waiting)
      this.#violate('every caller is answered', `${what} is open after the close`)
    this.#life.waiting.clear()
    this.#orphans.clear()
  }

  #violate(invariant: Invariant, message: string): void {
    this.#life.violate(invariant, message)
  }

  #heard(event: HostEvent): void {
    const { world, seenNames, isClosed } = this.#life
    world.note(`event ${event.kind} ${'status' in event ? `${event.status.name} ${event.status.state}` : ''}`)
    if (event.kind === 'tool-catalog.changed') return this.#checkChange(event)
    if (event.kind !== 'server.state-changed') return
    const { status } = event
    this.#checkReason(status)
    if (isClosed) return
    const published = this.#life.host.statuses.find(({ name }) => name === status.name)
    if (published !== undefined && published.state !== status.state)
      this.#violate(
        'an event tells what is published',
        `${status.name} is said to be ${status.state}: ${published.state}`,
      )
    if (published !== undefined) seenNames.add(status.name)
    else if (!seenNames.has(status.name))
      this.#violate('no event comes before the publication', `${status.name} is ${status.state} and not published`)
  }

  #checkChange({ server, revision }: Extract<HostEvent, { readonly kind: 'tool-catalog.changed' }>): void {
    const { toldRevisions } = this.#life
    if (toldRevisions.get(server) === revision)
      this.#violate(
        'a catalog changes only with its content',
        `${server} is said to have changed, to ${revision} again`,
      )
    toldRevisions.set(server, revision)
  }

  #checkReason({ name, state, reason }: ServerStatus): void {
    if (state !== 'ready' && (reason === undefined || reason.message === ''))
      this.#violate('every state that is not ready has a reason', `${name} is ${state} and says nothing`)
  }

  #checkStatuses(statuses: readonly ServerStatus[]): void {
    const { wanted, configuring, world, seenNames } = this.#life
    for (const status of statuses) {
      seenNames.add(status.name)
      this.#checkReason(status)
      this.#checkReady(status)
      const isStarting = status.state === 'starting' || status.state === 'installing'
      const sinceMs = world.dateMs - status.sinceAtMs
      if (isStarting && sinceMs > STARTING_MS_MAX)
        this.#violate('every start comes to an end', `${status.name} is ${status.state} for ${sinceMs} ms`)
    }
    if (configuring > 0) return
    const names = statuses.map(({ name }) => name).join(' ')
    const expected = [...wanted.keys()].join(' ')
    if (names !== expected) this.#violate('what is published is what was configured', `${names} instead of ${expected}`)
    for (const { name, state } of statuses)
      if ((wanted.get(name)?.enabled === false) !== (state === 'disabled'))
        this.#violate('what is published is what was configured', `${name} is ${state}`)
  }

  #checkReady({ name, state, serverInfo }: ServerStatus): void {
    if (state !== 'ready') return
    const instance = String(serverInfo?.['version'])
    const wanted = this.#life.published.get(name)
    const isOther = wanted !== undefined && serverInfo?.['name'] !== programKey(wanted)
    if (isOther && this.#life.configuring === 0)
      this.#violate('a changed server is replaced', `${name} is ready on ${String(serverInfo?.['name'])}`)
    const endedAtMs = this.#endedAtMs.get(instance)
    const { nowMs } = this.#life.world.timeline
    if (endedAtMs !== undefined && nowMs - endedAtMs > NOTICE_MS_MAX)
      this.#violate('a status does not lie', `${name} is ready on ${instance}, which ended ${nowMs - endedAtMs} ms ago`)
  }

  /** Who may still use an old process of a program, so that it runs beside the next one. */
  #noteHolders(): void {
    const { bindings, capturing, dedicated, heldAtMs, world } = this.#life
    for (const { wanted } of [...bindings, ...capturing])
      for (const one of wanted.values()) heldAtMs.set(programKey(one), world.timeline.nowMs)
    for (const { program } of dedicated) heldAtMs.set(program, world.timeline.nowMs)
  }

  #noteEnds(): void {
    const { processes, network, timeline } = this.#life.world
    const running = new Set([
      ...processes.servers.map(({ number }) => `pid ${number}`),
      ...network.clients.map(({ instance }) => instance),
    ])
    for (const instance of this.#running) if (!running.has(instance)) this.#endedAtMs.set(instance, timeline.nowMs)
    for (const [instance, atMs] of this.#endedAtMs)
      if (timeline.nowMs - atMs > 10 * NOTICE_MS_MAX && this.#endedAtMs.size > 200) this.#endedAtMs.delete(instance)
    this.#running = running
  }

  #checkProcesses(statuses: readonly ServerStatus[]): void {
    const { world } = this.#life
    const { nowMs } = world.timeline
    const starting = new Map<string, number>()
    for (const server of world.processes.servers) {
      const { number, program, endingAtMs } = server
      if (endingAtMs !== undefined) {
        if (nowMs - endingAtMs > ENDING_MS_MAX)
          this.#violate('a process that is ended ends', `pid ${number} was asked ${nowMs - endingAtMs} ms ago`)
        continue
      }
      if (!this.#isOwned(server, statuses))
        this.#violate('no process is without an owner', `pid ${number} of ${program.key}`)
      if (server.brain.listedRevision < 0) starting.set(program.key, (starting.get(program.key) ?? 0) + 1)
    }
    for (const [key, count] of starting) {
      const max = 1 + this.#life.holders(key)
      if (count > max) this.#violate('one start per identity', `${count} processes of ${key} are starting`)
    }
  }

  /** Somebody has to have it: the published set, a binding that is still held, or whoever asked for a connection of their own. */
  #isOwned({ number, program }: ServerProcess, statuses: readonly ServerStatus[]): boolean {
    const { published, wanted } = this.#life
    const isMember = statuses.some((status) => {
      const one = published.get(status.name) ?? wanted.get(status.name)
      const fits = [published.get(status.name), wanted.get(status.name)].some(
        (server) => server !== undefined && programKey(server) === program.key,
      )
      if (one === undefined || !fits) return false
      if (status.state === 'starting' || status.state === 'installing') return true
      return status.state === 'ready' && status.pid === number
    })
    return isMember || this.#life.holders(program.key) > 0
  }

  #checkClients(statuses: readonly ServerStatus[]): void {
    const { world, published, wanted } = this.#life
    const { nowMs } = world.timeline
    const open = new Set<number>()
    for (const { number, program, instance } of world.network.clients) {
      open.add(number)
      const isMember = statuses.some(({ name, state, serverInfo }) => {
        const fits = [published.get(name), wanted.get(name)].some(
          (server) => server !== undefined && programKey(server) === program.key,
        )
        if (!fits) return false
        return state === 'starting' || (state === 'ready' && serverInfo?.['version'] === instance)
      })
      const isOwned = isMember || this.#life.holders(program.key) > 0
      if (isOwned) this.#orphans.delete(number)
      else if (!this.#orphans.has(number)) this.#orphans.set(number, nowMs)
      const sinceMs = nowMs - (this.#orphans.get(number) ?? nowMs)
      if (sinceMs > ORPHAN_MS_MAX)
        this.#violate('no connection is without an owner', `HTTP client ${number} of ${program.key}, for ${sinceMs} ms`)
    }
    for (const number of this.#orphans.keys()) if (!open.has(number)) this.#orphans.delete(number)
  }

  #checkBindings(): void {
    this.#stepCount += 1
    for (const held of this.#life.bindings) {
      const { binding, revision, tools } = held
      if (binding.tools !== tools || binding.revision !== revision)
        this.#violate('a binding never changes', `binding ${held.number}`)
      if (!this.#known.has(held)) this.#checkNew(held)
      else if ((this.#stepCount + held.number) % CONTENT_EVERY === 0) this.#checkContent(held)
    }
  }

  /** Everything that it shows, as when it was taken. */
  #checkContent({ binding, content, number }: HeldBinding): void {
    if (contentOf(binding) !== content) this.#violate('a binding never changes', `the content of binding ${number}`)
  }

  #checkNew(held: HeldBinding): void {
    this.#known.add(held)
    this.#checkRevision(held)
    const { tools, wanted, number } = held
    const hidden = tools.find(({ server, rawName }) => {
      const one = wanted.get(server)
      return one !== undefined && !allows(one, rawName)
    })
    if (hidden !== undefined)
      this.#violate('the configured filter holds for listings', `${hidden.name} in binding ${number}`)
  }

  /** Both ways: one content for a revision, one revision for a content. */
  #checkRevision({ revision, tools, number }: HeldBinding): void {
    const { revisions } = this.#life
    const shown = JSON.stringify(tools)
    if ((revisions.get(revision) ?? shown) !== shown)
      this.#violate('a revision stands for one content', `${revision} of binding ${number}`)
    const other = revisions.get(shown)
    if (other !== undefined && other !== revision)
      this.#violate('a revision changes only with the content', `${other} and ${revision} show the same`)
    revisions.set(revision, shown)
    revisions.set(shown, revision)
  }

  #checkWaiting(): void {
    const { waiting, world } = this.#life
    for (const { what, dueAtMs, sinceAtMs } of waiting)
      if (world.timeline.nowMs > dueAtMs) {
        this.#violate('every caller is answered', `${what} is open since ${sinceAtMs}`)
        return
      }
  }
}
