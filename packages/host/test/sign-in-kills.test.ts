// Several programs share one sign-in at a real authorization server that rotates refresh tokens and ends a grant when one is sent twice. One of them is killed
// in the middle of a renewal, again and again.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createHost, defineServer } from '@convoke/host'
import {
  type AuthorizationServer,
  type ProtectedServer,
  signInPerson,
  startAuthorizationServer,
  startProtectedServer,
  verifies,
} from '@convoke/testkit'
import { expect } from 'vitest'
import type { RenewalStep } from '../src/auth/grant-holder.ts'
import type { SignInChildAnswer, SignInChildOrder, SignInChildSetup } from './sign-in-child.ts'

/** Expiries of the token for each step. `npm run soak` takes 20. */
const EXPIRIES = Number(process.env['CONVOKE_SIGN_IN_EXPIRIES'] ?? 1)
const PROGRAMS = 3
const CALLS = 5
const HOUR_MS = 3_600_000
const STEPS = ['locking', 'locked', 'answered', 'saved', 'releasing'] as const satisfies readonly RenewalStep[]
const program = fileURLToPath(new URL('sign-in-child.ts', import.meta.url))

/** One program. */
class Program {
  readonly #child: ChildProcess
  readonly #lines: Interface
  readonly #answers: AsyncIterator<string>
  readonly exited: Promise<unknown>
  stderr = ''

  constructor(setup: SignInChildSetup) {
    const child = spawn(process.execPath, ['--conditions=@convoke/source', program, JSON.stringify(setup)], {
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString()
    })
    child.stdin.on('error', () => {}) // it may be dead
    this.exited = once(child, 'exit')
    this.#lines = createInterface({ input: child.stdout })
    this.#answers = this.#lines[Symbol.asyncIterator]()
  }

  /** @throws {Error} with its stderr when it does not get that far. */
  async ready(): Promise<this> {
    if ((await this.#answers.next()).done === true) throw new Error(`the program did not start: ${this.stderr}`)
    return this
  }

  tell(order: SignInChildOrder): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`)
  }

  /** Undefined: it has died. */
  async call(count: number): Promise<SignInChildAnswer | undefined> {
    this.tell({ kind: 'call', count })
    const { done, value } = await this.#answers.next()
    return done === true ? undefined : (JSON.parse(value) as SignInChildAnswer)
  }

  async end(): Promise<void> {
    this.#child.stdin?.end()
    await this.exited
    this.#lines.close()
  }
}

interface World {
  readonly authorization: AuthorizationServer
  readonly server: ProtectedServer
  readonly directory: string
}

async function signIn({ server, directory }: World): Promise<void> {
  const transport = { kind: 'http', url: server.url, headers: {}, envHeaders: {} } as const
  await using host = await createHost({
    definitions: [defineServer({ name: 'guarded', transport })],
    signIns: { store: 'file', directory },
    start: [],
  })
  const person = signInPerson()
  await host.signIn('guarded', {
    async openPage(url) {
      await person.signIn(url)
    },
  })
}

/** What one step has cost. */
interface Tally {
  calls: number
  kills: number
  signIns: number
  /** How calls ended before each new sign-in. */
  lost: string[]
  failures: string[]
}

/** Lets the token expire again and again; each time one program dies at some step, and is started anew. */
class Trial implements AsyncDisposable {
  readonly #world: World
  #programs: Program[] = []
  #advancedMs = 0
  #tally: Tally = { calls: 0, kills: 0, signIns: 0, lost: [], failures: [] }

  constructor(world: World) {
    this.#world = world
  }

  async begin(): Promise<void> {
    this.#programs = await Promise.all(Array.from({ length: PROGRAMS }, () => this.#start()))
    await this.#callOnce()
  }

  async killAt(step: RenewalStep): Promise<Tally> {
    this.#tally = { calls: 0, kills: 0, signIns: 0, lost: [], failures: [] }
    for (let expiry = 0; expiry < EXPIRIES; expiry++) await this.#expire(step, expiry % PROGRAMS)
    return this.#tally
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#programs.map((one) => one.end()))
  }

  #start(): Promise<Program> {
    const { server, directory } = this.#world
    return new Program({ url: server.url, directory, store: 'file' }).ready()
  }

  async #expire(step: RenewalStep, victim: number): Promise<void> {
    const tally = this.#tally
    this.#advancedMs += HOUR_MS
    for (const one of this.#programs) one.tell({ kind: 'advance', ms: HOUR_MS })
    this.#programs[victim]?.tell({ kind: 'die-at', step })
    const answers = await this.#callAll(step, victim)
    const outcomes = answers.flatMap((answer) => answer?.outcomes ?? [])
    tally.calls += outcomes.length
    for (const [index, answer] of answers.entries()) if (answer === undefined) await this.#bury(index, victim)
    const isWell = await this.#callOnce()
    if (isWell && outcomes.every((outcome) => outcome === 'ok')) return
    tally.failures.push(...outcomes.filter((outcome) => !EXPECTED.has(outcome)))
    tally.lost.push(outcomes.filter((outcome) => outcome !== 'ok').join(' ') || 'a call after it')
    await signIn(this.#world)
    tally.signIns++
    // The others find it within a second.
    await expect.poll(() => this.#callOnce(), { timeout: 15_000, message: 'a new sign-in helps' }).toBe(true)
  }

  /** All programs call at once; where the victim has to be the one that asks, it is given the start. */
  async #callAll(step: RenewalStep, victim: number): Promise<readonly (SignInChildAnswer | undefined)[]> {
    const programs = this.#programs
    if (step !== 'answered' && step !== 'saved') return Promise.all(programs.map((one) => one.call(CALLS)))
    const { authorization } = this.#world
    await authorization.set({ hold: 'before-token' })
    const first = programs[victim]?.call(CALLS)
    await authorization.whenStats(({ waiting }) => waiting > 0)
    const all = programs.map((one, index) => (index === victim ? first : one.call(CALLS)))
    await authorization.set({ hold: 'nothing' })
    return Promise.all(all)
  }

  async #bury(index: number, victim: number): Promise<void> {
    this.#tally.kills++
    if (index !== victim) this.#tally.failures.push(`program ${index} died by itself: ${this.#programs[index]?.stderr}`)
    const fresh = await this.#start()
    fresh.tell({ kind: 'advance', ms: this.#advancedMs })
    this.#programs[index] = fresh
  }

  async #callOnce(): Promise<boolean> {
    const answers = await Promise.all(this.#programs.map((one) => one.call(1)))
    return answers.every((answer) => answer?.outcomes[0] === 'ok')
  }
}

/** How a call ends whose sign-in is used up. */
const EXPECTED: ReadonlySet<string> = new Set(['ok', 'AUTH_REQUIRED', 'AUTH_FAILED'])

async function refreshesOf({ authorization }: World): Promise<{ readonly count: number; readonly replays: number }> {
  const { tokenRequests } = await authorization.stats()
  const refreshes = tokenRequests.filter(({ grantType }) => grantType === 'refresh_token')
  return { count: refreshes.length, replays: refreshes.filter(({ replay }) => replay).length }
}

verifies(
  'auth.145',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'convoke-sign-in-'))
    try {
      await using authorization = await startAuthorizationServer({ knobs: { accessTokenSeconds: 3_600 } })
      await using server = await startProtectedServer({ issuer: authorization.issuer })
      const world = { authorization, server, directory: join(folder, 'sign-ins') }
      await signIn(world)
      await using trial = new Trial(world)
      await trial.begin()
      for (const step of STEPS) {
        const before = await refreshesOf(world)
        const { calls, kills, signIns, lost, failures } = await trial.killAt(step)
        const { count, replays } = await refreshesOf(world)
        process.stderr.write(
          `killed at "${step}": ${EXPIRIES} expiries, ${calls} calls answered, ${kills} kills, ${count - before.count} refreshes, ${replays} replays, ${signIns} new sign-ins\n`,
        )
        expect([step, failures]).toEqual([step, []])
        expect([step, replays, kills]).toEqual([step, 0, EXPIRIES])
        // Only an answer that died with its program may cost a sign-in.
        expect([step, lost.slice(step === 'answered' ? kills : 0)]).toEqual([step, []])
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
  3_600_000,
)
