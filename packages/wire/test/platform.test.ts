// A world of our own: a clock that stands until it is moved, and a server that is a function.
import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { verifies } from '@convoke/testkit'
import {
  type ChildProcessPort,
  type JsonObject,
  nodePlatform,
  type Platform,
  Session,
  type SpawnSpec,
} from '@convoke/wire'
import { expect } from 'vitest'

interface Message {
  id?: number
  method: string
  params?: JsonObject
}
type Answer = (message: Message, say: (message: object) => void) => void

class World {
  nowMs = 0
  readonly spawned: SpawnSpec[] = []
  readonly signals: string[] = []
  readonly children: SimulatedChild[] = []
  readonly #timers = new Map<object, { atMs: number; callback: () => void }>()
  readonly platform: Platform

  constructor(answer: Answer) {
    this.platform = {
      ...nodePlatform,
      now: () => this.nowMs,
      dateMs: () => 1_000_000 + this.nowMs,
      setTimer: (callback, ms) => {
        const timer = {}
        this.#timers.set(timer, { atMs: this.nowMs + ms, callback })
        return timer
      },
      clearTimer: (timer) => void this.#timers.delete(timer as object),
      randomBytes: (count) => Buffer.alloc(count, 7),
      env: { PATH: '/simulated', SECRET: 's' },
      os: 'simulated',
      pid: 4_000_001,
      processes: {
        readsEnvironments: false,
        facts: () => undefined,
        all: () => [],
        variable: () => undefined,
        carrying: () => [],
        command: () => '',
        place: () => 'here',
      },
      spawn: (spec) => {
        this.spawned.push(spec)
        const child = new SimulatedChild(answer)
        this.children.push(child)
        return child
      },
      kill: (_pid, signal) => {
        if (signal === 0) return this.children.some((child) => !child.isOver)
        this.signals.push(signal)
        if (signal === 'SIGKILL') for (const child of this.children) child.end(null, 'SIGKILL')
        return true
      },
      onExit: () => () => {},
    }
  }

  get timerCount(): number {
    return this.#timers.size
  }

  /** Lets all that can happen now happen. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
  }

  async advance(ms: number): Promise<void> {
    const endsAtMs = this.nowMs + ms
    for (;;) {
      await this.settle()
      const due = [...this.#timers]
        .filter(([, { atMs }]) => atMs <= endsAtMs)
        .sort(([, a], [, b]) => a.atMs - b.atMs)[0]
      if (due === undefined) break
      this.#timers.delete(due[0])
      this.nowMs = Math.max(this.nowMs, due[1].atMs)
      due[1].callback()
    }
    this.nowMs = endsAtMs
    await this.settle()
  }
}

class SimulatedChild extends EventEmitter implements ChildProcessPort {
  readonly pid = 4_000_002
  readonly stdin = new PassThrough()
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  isOver = false

  constructor(answer: Answer) {
    super()
    this.stdin.on('data', (chunk: Buffer) => {
      for (const line of chunk
        .toString()
        .split('\n')
        .filter((one) => one !== ''))
        answer(JSON.parse(line) as Message, (message) => this.stdout.write(`${JSON.stringify(message)}\n`))
    })
  }

  end(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.isOver) return
    this.isOver = true
    this.emit('exit', code, signal)
    this.stdout.end()
    setImmediate(() => this.emit('close', code, signal))
  }
}

verifies('wire.082', async () => {
  const heard: string[] = []
  const world = new World((message, say) => {
    heard.push(message.method)
    const { id, method, params } = message
    if (method === 'server/discover') say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } })
    if (method === 'initialize')
      say({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {} } })
    if (method === 'tools/call' && params?.['name'] === 'echo')
      say({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'simulated' }] } })
  })
  const session = await Session.connect({
    target: { kind: 'stdio', command: 'nothing-real', env: { TOKEN: 't' } },
    platform: world.platform,
  })
  expect(world.spawned).toMatchObject([
    {
      command: 'nothing-real',
      args: [],
      env: { PATH: '/simulated', TOKEN: 't', CONVOKE_LEASE: `${'07'.repeat(16)}-1` },
    },
  ])
  expect(world.spawned[0]?.env).not.toHaveProperty('SECRET')
  expect((await session.callTool('echo')).content[0]?.['text']).toBe('simulated')

  // An hour passes in no time, and the deadline is exact.
  let failure: unknown
  const hanging = session.callTool('hang', {}, { idleTimeoutMs: 3_600_000 }).catch((error: unknown) => {
    failure = error
  })
  await world.advance(3_599_999)
  expect(failure).toBeUndefined()
  await world.advance(1)
  await hanging
  expect(failure).toMatchObject({ code: 'timed-out', details: { limit: 'idle' } })
  expect(heard.at(-1)).toBe('notifications/cancelled')

  // A stubborn server: asked, told 2 s later, killed 2 s after that.
  const closing = session.close()
  await world.advance(1_999)
  expect(world.signals).toEqual([])
  await world.advance(1)
  expect(world.signals).toEqual(['SIGTERM'])
  await world.advance(2_000)
  expect(world.signals).toEqual(['SIGTERM', 'SIGKILL'])
  await closing
  expect(world.timerCount).toBe(0)
})
