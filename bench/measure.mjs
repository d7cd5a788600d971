// One measurement in a fresh process: `node measure.mjs '{"workload", "peer" | "argv", "config"}'`; prints one line `RESULT {…}`.
import { cpuUs, round, rssMb } from './facts.mjs'

const { workload, peer, argv, config } = JSON.parse(process.argv[2])
const out = {}

async function measureLibrary() {
  // What the peer brings along is counted before anything of ours is loaded that it might share.
  const rss = rssMb()
  const cpu = cpuUs()
  const module = await import(new URL(`peers/${peer}.mjs`, import.meta.url).href)
  out.importCpuMs = round((cpuUs() - cpu) / 1000)
  out.importRssMb = round(rssMb() - rss)
  const { workloads } = await import('./workloads.mjs')
  await workloads[workload](module, config, out)
}

async function measureGateway() {
  const module = await import('./gateway-workload.mjs')
  await module.measureGateway(argv, config, out)
}

try {
  await (workload === 'gateway' ? measureGateway() : measureLibrary())
} catch (error) {
  out.error = String(error?.stack ?? error).slice(0, 600)
}
process.stdout.write(`RESULT ${JSON.stringify(out)}\n`, () => process.exit(0))
