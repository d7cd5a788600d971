// `node bench/known.mjs prime|measure|refresh|steps FOLDER SERVERS TOOLS`: a host whose servers were listed by an earlier process, one that is refreshed, and one
// whose threads take steps. Prints one line of JSON.
import { join } from 'node:path'
import { cpuUs, round } from './facts.mjs'
import { stdioSpec } from './specs.mjs'

const [, , mode, folder, servers, tools] = process.argv
const { createHost, defineServer } = await import('@convoke/host')
const { readFileSync } = process.getBuiltinModule('node:fs')

const startLog = join(folder, 'starts')
const definitions = Array.from({ length: Number(servers) }, (_, index) => {
  const { command, args } = stdioSpec(`s${index}`, { tools: Number(tools) })
  return defineServer({
    name: `s${index}`,
    transport: { kind: 'stdio', command, args, env: { START_LOG: startLog }, envVars: [] },
  })
})
const starts = () => {
  try {
    return readFileSync(startLog, 'utf8').split('\n').filter(Boolean).length
  } catch {
    return 0
  }
}
const cacheDirectory = join(folder, 'cache')
const round3 = (ms) => Math.round(ms * 1000) / 1000
const print = (figures) => process.stdout.write(`${JSON.stringify(figures)}\n`)

if (mode === 'prime') {
  await using host = await createHost({ definitions, cacheDirectory })
  await host.whenSettled()
} else if (mode === 'measure') {
  const [cpu, beganAtMs, before] = [cpuUs(), performance.now(), starts()]
  const host = await createHost({ definitions, cacheDirectory })
  const binding = await host.bind()
  const figures = {
    tools: binding.tools.length,
    firstToolsMs: round(performance.now() - beganAtMs),
    cpuMs: round((cpuUs() - cpu) / 1000),
    children: host.statuses.filter(({ pid }) => pid !== undefined).length,
  }
  await binding[Symbol.asyncDispose]()
  await host.close()
  print({ ...figures, starts: starts() - before })
} else if (mode === 'steps') {
  // A provider that takes half a second at the start of each turn, and has nothing new for its steps.
  const slowMs = 500
  const contributor = {
    turnStartPhase: () => 'task-start',
    requiresRuntime: () => true,
    onTurnStart: () => new Promise((resolve) => setTimeout(resolve, slowMs)),
    refreshCatalogForStep: async () => 'unchanged',
    contribute: () => [{ kind: 'plugin-connectors', pluginId: 'p', pluginName: 'P', connectorIds: ['c'] }],
    worldState: () => [{ id: 'place', text: 'here' }],
  }
  const extensions = [
    {
      id: 'slow',
      install(registrar) {
        for (const kind of ['turnLifecycle', 'servers', 'context']) registrar.register(kind, contributor)
      },
    },
  ]
  const host = await createHost({ definitions, cacheDirectory, extensions })
  const thread = await host.thread()
  const generations = []
  const begins = []
  const steps = []
  for (let round = 0; round < 3; round++) {
    const beganAtMs = performance.now()
    const turn = await thread.turn()
    begins.push(performance.now() - beganAtMs - slowMs)
    for (let count = 0; count < 300; count++) {
      const [cpu, stepAtMs] = [cpuUs(), performance.now()]
      const step = await turn.step()
      steps.push([performance.now() - stepAtMs, (cpuUs() - cpu) / 1000])
      generations.push(step.binding.generation)
    }
    await turn.complete()
  }
  const median = (values) => values.sort((one, other) => one - other)[values.length >> 1]
  const later = steps.slice(20)
  print({
    tools: (await (await thread.turn()).step()).tools.length,
    stepMs: round3(median(later.map(([ms]) => ms))),
    stepCpuMs: round3(median(later.map(([, ms]) => ms))),
    firstStepMs: round(steps[0][0]),
    turnMs: round(median(begins)),
    publications: generations.at(-1) - generations[0],
    starts: starts() - Number(servers),
  })
  await host.close()
} else {
  const host = await createHost({ definitions, cacheDirectory, start: 'all' })
  await host.whenSettled({ servers: definitions.map(({ name }) => name) })
  const before = starts()
  const times = []
  for (let round = 0; round < 15; round++) {
    const cpu = cpuUs()
    await host.refresh()
    times.push((cpuUs() - cpu) / 1000)
  }
  const filtered = definitions.map((one) => ({ ...one, tools: { deny: ['echo'] } }))
  const rows = await host.configure(filtered)
  await host.whenSettled()
  const reconnects = rows.filter(({ action }) => action !== 'reuse').length
  times.sort((one, other) => one - other)
  print({
    refreshCpuMs: round(times[7]),
    firstRefreshCpuMs: round(times.at(-1)),
    reconnects,
    starts: starts() - before,
  })
  await host.close()
}
