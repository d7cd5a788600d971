// Many reconnects and many generations of one host, with what is left after each part of them: heap, descriptors, children, timers.
import { readdirSync } from 'node:fs'
import { createHost, defineServer, type Host, nodePlatform, type Platform, type ServerDefinition } from '@convoke/host'
import { scriptedStdio, startScriptedHttp } from './runners.ts'

/** How much is done. */
export interface EnduranceOptions {
  /** New connections to a server over HTTP. */
  readonly reconnects: number
  /** New processes of a server over stdio. */
  readonly restarts: number
  /** Configurations that are applied while views are held and released. */
  readonly generations: number
  /** Told of every sample. */
  onSample?(sample: EnduranceSample): void
}

/** What there is at one moment, after the garbage was collected. */
export interface EnduranceSample {
  /** `before` and `closed`: no host is there. */
  readonly part: 'before' | 'reconnects' | 'restarts' | 'generations' | 'closed'
  /** How many of the part were done. */
  readonly done: number
  readonly heapMb: number
  readonly descriptors: number
  readonly children: number
  /** Timers of the host that are set, those that keep no process alive included. */
  readonly timers: number
}

/** Samples of each part, the first one included. */
const SAMPLES = 5
/** Views that are held at a time. */
const HELD_MAX = 7

/** Runs the three parts, one after the other; the process has to be started with `--expose-gc`. */
export async function endure(options: EnduranceOptions): Promise<readonly EnduranceSample[]> {
  const samples: EnduranceSample[] = []
  const clock = new CountedTimers()
  const { platform } = clock
  const take = async (part: EnduranceSample['part'], done: number): Promise<void> => {
    const sample = await sampleOf(part, done, clock.size)
    samples.push(sample)
    options.onSample?.(sample)
  }
  await using web = await startScriptedHttp({ tools: 20 })
  const transport = { kind: 'http', url: web.url, headers: {}, envHeaders: {} } as const
  const remote = defineServer({ name: 'remote', transport })
  await take('before', 0)
  {
    await using host = await createHost({ definitions: [remote], platform })
    await repeat('reconnects', options.reconnects, take, () => reconnect(host, 'remote'))
  }
  const { command, args, env = {} } = scriptedStdio({})
  const local = defineServer({ name: 'local', transport: { kind: 'stdio', command, args, env, envVars: [] } })
  {
    await using host = await createHost({ definitions: [local], platform, closeGraceMs: 500 })
    await repeat('restarts', options.restarts, take, () => reconnect(host, 'local'))
  }
  {
    await using host = await createHost({ definitions: [remote], platform })
    await host.whenSettled()
    const held: AsyncDisposable[] = []
    await repeat('generations', options.generations, take, async (index) => {
      await host.configure(shape(remote, index))
      held.push(await host.bind({ grace: 'none' }))
      if (held.length > HELD_MAX) await held.shift()?.[Symbol.asyncDispose]()
    })
    for (const binding of held) await binding[Symbol.asyncDispose]()
  }
  await take('closed', 0)
  return samples
}

/** A platform that knows which timers are set. */
class CountedTimers {
  readonly #set = new Set<object>()

  get size(): number {
    return this.#set.size
  }

  get platform(): Platform {
    return {
      ...nodePlatform,
      setTimer: (callback, ms, kind) => {
        const timer = nodePlatform.setTimer(
          () => {
            this.#set.delete(timer)
            callback()
          },
          ms,
          kind,
        )
        this.#set.add(timer)
        return timer
      },
      clearTimer: (timer) => {
        if (timer !== undefined) this.#set.delete(timer)
        nodePlatform.clearTimer(timer)
      },
    }
  }
}

async function reconnect(host: Host, server: string): Promise<void> {
  const { state, reason } = await host.reconnect(server)
  if (state !== 'ready') throw new Error(`${server} is ${state}: ${reason?.message}`)
}

/** Another filter each time, now and then another limit, and a second server that comes and goes. */
function shape(remote: ServerDefinition, index: number): ServerDefinition[] {
  const changed = {
    ...remote,
    tools: { deny: [`tool_${index % 20}`] },
    messageBytesMax: 1_000_000 + (index % 50 === 0 ? index : 0),
  }
  return index % 3 === 0 ? [changed, { ...remote, name: 'second' }] : [changed]
}

async function repeat(
  part: EnduranceSample['part'],
  count: number,
  take: (part: EnduranceSample['part'], done: number) => Promise<void>,
  work: (index: number) => Promise<void>,
): Promise<void> {
  // What is loaded and compiled on the way is not counted.
  const warm = Math.ceil(count / 10)
  for (let index = 0; index < warm; index++) await work(index)
  await take(part, 0)
  const step = Math.max(1, Math.floor(count / SAMPLES))
  for (let index = 1; index <= count; index++) {
    await work(warm + index)
    if (index % step === 0) await take(part, index)
  }
}

async function sampleOf(part: EnduranceSample['part'], done: number, timers: number): Promise<EnduranceSample> {
  const { gc } = globalThis as { readonly gc?: () => void }
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    gc?.()
  }
  const active = process.getActiveResourcesInfo()
  return {
    part,
    done,
    heapMb: Math.round((process.memoryUsage().heapUsed / 1_048_576) * 100) / 100,
    descriptors: process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0,
    children: active.filter((name) => name === 'ProcessWrap').length,
    timers,
  }
}

/** What grew from the first sample of a part to its last, in words; empty when nothing did. */
export function growthIn(samples: readonly EnduranceSample[], heapMbMax: number): readonly string[] {
  const [before, closed] = [samples[0], samples.at(-1)]
  const left =
    before?.part === 'before' && closed?.part === 'closed'
      ? (['descriptors', 'children', 'timers'] as const).flatMap((name) =>
          closed[name] > before[name] ? [`${closed[name] - before[name]} ${name} are left after the close`] : [],
        )
      : []
  const grown = (['reconnects', 'restarts', 'generations'] as const).flatMap((part) => {
    const own = samples.filter((sample) => sample.part === part)
    const [first, last] = [own[0], own.at(-1)]
    if (first === undefined || last === undefined) return [`${part}: not run`]
    const rose = (name: 'heapMb' | 'descriptors' | 'children' | 'timers', most: number): string[] =>
      last[name] - first[name] > most ? [`${part}: ${name} grew from ${first[name]} to ${last[name]}`] : []
    return [...rose('heapMb', heapMbMax), ...rose('descriptors', 4), ...rose('children', 1), ...rose('timers', 4)]
  })
  return [...left, ...grown]
}
