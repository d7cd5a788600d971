// A host in a process of its own: starts a few servers, prints the numbers of everything it started, and then waits, exits or throws.
import { setInterval } from 'node:timers'
import { Session } from '@convoke/wire'
import { grandchildrenIn, linesServer, until } from './lines.ts'

const [leaseDirectory = '', mode] = process.argv.slice(2)
const target = (rules: Parameters<typeof linesServer>[0]): ReturnType<typeof linesServer> =>
  linesServer(rules, { leaseDirectory, env: { TOKEN: 'canary-env' } })
const sessions = await Promise.all([
  Session.connect({ target: target({ stubborn: [], start: [{ grandchild: 'same-group' }] }), era: 'legacy' }),
  Session.connect({ target: target({ start: [{ grandchild: 'own-session' }], alive: [] }), era: 'legacy' }),
])
await Promise.all(sessions.map((session) => session.callTool('echo', { text: 'canary-argument' })))
await until(() => sessions.every((session) => grandchildrenIn(session.stderrTail).length === 1))
const started = sessions.flatMap((session) => [session.pid, ...grandchildrenIn(session.stderrTail)])
await new Promise<void>((resolve) => process.stdout.write(`${JSON.stringify(started)}\n`, () => resolve()))
if (mode === 'exit') process.exit(0)
if (mode === 'throw') throw new Error('The host broke (a test wants it so)')
setInterval(() => {}, 60_000)
