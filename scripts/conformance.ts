// `npm run conformance`: the official suite's own frozen requirement sets, one scenario at a time, each once.
// Client: our client. Server: the fixture behind `convoke serve --transparent` (`--server fixture`: the fixture alone).
import './assert-node.ts'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import {
  type Score,
  type ScoreOptions,
  score,
  scoreExtensions,
  type Tally,
} from '../packages/testkit/conformance/scores.ts'
import {
  type Leg,
  REVISIONS,
  type Revision,
  requiredScenarios,
  type ScenarioOutcome,
  type Subject,
} from '../packages/testkit/conformance/suite.ts'
import { exitOnSignals } from '../packages/testkit/src/end-with-us.ts'
import { startGateway } from '../packages/testkit/src/gateway-runner.ts'
import { type RunningServer, startSdk2Http } from '../packages/testkit/src/runners.ts'
import { report } from './result.ts'

const HELP = `npm run conformance -- [options]
  --leg client|server        only this side (default: both)
  --revision DATE            only this revision (default: ${REVISIONS.join(' and ')})
  --server gateway|fixture   whom the server scenarios meet (default: gateway)
  --url URL                  … or a server that runs already
  --extensions               in place of all these: the sign-ins of clients that no set demands
  --only REGEX               only scenarios whose name matches
  --concurrency N            scenarios at a time (default: 1)
  --verbose                  the suite's output of every scenario, not of failed ones alone
  --json                     one JSON document instead of lines
`
const { values: options } = parseArgs({
  options: {
    leg: { type: 'string' },
    revision: { type: 'string' },
    server: { type: 'string', default: 'gateway' },
    url: { type: 'string' },
    extensions: { type: 'boolean', default: false },
    only: { type: 'string' },
    concurrency: { type: 'string', default: '1' },
    verbose: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const LEGS: readonly Leg[] = ['client', 'server']
const clientFile = resolve(import.meta.dirname, '../packages/testkit/conformance/client.ts')
const log = options.json ? process.stderr : process.stdout

/** Whoever is judged, held until the scenarios are over. */
interface Judged extends AsyncDisposable {
  readonly subject: Subject
}

async function judged(leg: Leg): Promise<Judged> {
  if (leg === 'client') return alone({ command: `${process.execPath} --conditions=@convoke/source ${clientFile}` })
  if (options.url !== undefined) return alone({ url: options.url })
  const fixture = await startSdk2Http()
  if (options.server === 'fixture') return holding([fixture], { url: fixture.url })
  try {
    const gateway = await startGateway({ servers: { fixture: { url: fixture.url } }, transparent: 'fixture' })
    return holding([gateway, fixture], { url: gateway.url })
  } catch (error) {
    await fixture[Symbol.asyncDispose]()
    throw error
  }
}

function alone(subject: Subject): Judged {
  return { subject, [Symbol.asyncDispose]: async () => {} }
}

function holding(servers: readonly RunningServer[], subject: Subject): Judged {
  return {
    subject,
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server[Symbol.asyncDispose]()
    },
  }
}

/** A subject that does not start has passed nothing, and the other sets are still run. */
async function judge(leg: Leg, revision: Revision): Promise<Score> {
  try {
    return await scoreOf(leg, revision)
  } catch (error) {
    log.write(`  FAILED ${leg} ${revision} did not start: ${String(error)}\n`)
    const target = requiredScenarios(revision, leg).length
    return { leg, revision, passed: 0, run: target, target, durationMs: 0, failed: [] }
  }
}

async function scoreOf(leg: Leg, revision: Revision): Promise<Score> {
  await using who = await judged(leg)
  return await score(leg, revision, who.subject, scoreOptions(leg))
}

function scoreOptions(leg: Leg): ScoreOptions {
  return {
    ...(options.only === undefined ? {} : { only: new RegExp(options.only) }),
    concurrency: Number(options.concurrency),
    onOutcome({ scenario, revision, passed, durationMs, output }: ScenarioOutcome) {
      log.write(`  ${passed ? 'ok' : 'FAILED'} ${leg} ${revision} ${scenario} (${durationMs} ms)\n`)
      if (!passed || options.verbose) log.write(`${output.replace(/^/gm, '    ')}\n`)
    },
  }
}

/** With a filter, the scenarios that were run are what is demanded. */
function goalOf({ run, target }: Tally): number {
  return options.only === undefined ? target : run
}

function summarize(what: string, tally: Tally): void {
  log.write(`${what}: ${tally.passed}/${goalOf(tally)} (${Math.round(tally.durationMs / 1000)} s)\n`)
}

async function judgeRequired(): Promise<void> {
  const scores: Score[] = []
  for (const leg of LEGS.filter((one) => options.leg === undefined || one === options.leg)) {
    for (const revision of REVISIONS.filter((one) => options.revision === undefined || one === options.revision)) {
      scores.push(await judge(leg, revision))
    }
  }
  const ran = scores.filter((one) => goalOf(one) > 0)
  if (options.json)
    process.stdout.write(`${JSON.stringify({ version: 1, server: options.server, scores: ran }, null, 2)}\n`)
  for (const one of ran) summarize(`${one.leg} ${one.revision}`, one)
  const passed = ran.reduce((sum, one) => sum + one.passed, 0)
  await report(passed, ran.reduce((sum, one) => sum + goalOf(one), 0) - passed)
}

async function judgeExtensions(): Promise<void> {
  await using who = await judged('client')
  const extensions = await scoreExtensions(who.subject, scoreOptions('client'))
  if (options.json) process.stdout.write(`${JSON.stringify({ version: 1, extensions }, null, 2)}\n`)
  summarize('extensions', extensions)
  await report(extensions.passed, goalOf(extensions) - extensions.passed)
}

if (options.help) process.stdout.write(HELP)
else {
  exitOnSignals()
  await (options.extensions ? judgeExtensions() : judgeRequired())
}
