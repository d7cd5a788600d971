// One program among several that share a sign-in: calls a protected server when it is told to, with a clock that its parent moves, and dies in the middle of
// a renewal if it is told to. JSON lines over stdin and stdout.
import { createInterface } from 'node:readline'
import { createHost, defineServer } from '@convoke/host'
import type { RenewalStep } from '../src/auth/grant-holder.ts'
import { makeSignIns } from '../src/host-sign-ins.ts'
import { nodePlatform } from '../src/protocol/index.ts'

/** What the program is made of; its only argument, as JSON. */
export interface SignInChildSetup {
  readonly url: string
  readonly directory: string
  readonly store: 'file' | 'keyring'
}

/** What its parent tells it, one per line. */
export type SignInChildOrder =
  /** Moves its clock. */
  | { readonly kind: 'advance'; readonly ms: number }
  /** Ends it by SIGKILL at this step of its next renewal. */
  | { readonly kind: 'die-at'; readonly step: RenewalStep }
  /** Calls `whoami` so many times at once. */
  | { readonly kind: 'call'; readonly count: number }

/** What it answers to `call`; one per call: `ok`, or how it ended. Before the first order: `ready`. */
export interface SignInChildAnswer {
  readonly outcomes: readonly string[]
  readonly asked: number
}

const setup = JSON.parse(process.argv[2] ?? '') as SignInChildSetup
let offsetMs = 0
let dieAt: RenewalStep | undefined
let asked = 0
const platform = { ...nodePlatform, dateMs: () => Date.now() + offsetMs }

const signIns = makeSignIns({
  settings: { store: setup.store, directory: setup.directory },
  stateDirectory: undefined,
  clientName: 'Convoke tests',
  platform,
  hasAccount: () => false,
  onChange: () => {},
  onStep(step) {
    if (step === 'asking') asked++
    if (step === dieAt) process.kill(process.pid, 'SIGKILL')
  },
})
await using host = await createHost({
  definitions: [
    defineServer({ name: 'guarded', transport: { kind: 'http', url: setup.url, headers: {}, envHeaders: {} } }),
  ],
  platform,
  credentials: signIns,
  authorization: (definition) => signIns.authorizationFor(definition),
  start: [],
})

async function callOnce(): Promise<string> {
  const outcome = await host.callTool({ server: 'guarded', tool: 'whoami', wait: 'ready' })
  if (outcome.kind === 'ok') return 'ok'
  if (!('error' in outcome)) return outcome.kind
  const { code, message } = outcome.error
  return code.startsWith('AUTH_') ? code : `${code}: ${message}`
}

const say = (value: object): void => void process.stdout.write(`${JSON.stringify(value)}\n`)
say({ kind: 'ready' })
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as SignInChildOrder
  switch (order.kind) {
    case 'advance':
      offsetMs += order.ms
      break
    case 'die-at':
      dieAt = order.step
      break
    case 'call': {
      await host.refresh()
      const outcomes = await Promise.all(Array.from({ length: order.count }, callOnce))
      say({ outcomes, asked } satisfies SignInChildAnswer)
    }
  }
}
await signIns.close()
