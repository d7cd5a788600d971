// A host in a process of its own, to be killed: `node host-child.ts STATE_DIRECTORY LAUNCH_JSON`. Prints the pid of its server when that is ready.
import { createHost, defineServer } from '@convoke/host'

const [stateDirectory = '', launch = '{}'] = process.argv.slice(2)
const { command, args } = JSON.parse(launch) as { command: string; args: string[] }
const host = await createHost({
  definitions: [defineServer({ name: 's', transport: { kind: 'stdio', command, args, env: {}, envVars: [] } })],
  stateDirectory,
})
await host.whenSettled()
process.stdout.write(`READY ${host.statuses[0]?.pid}\n`)
setInterval(() => {}, 60_000)
