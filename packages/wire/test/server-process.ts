// The fixture's endpoint as a process of its own, for what can only be seen from outside: its memory and its sockets. Limits come as JSON in the last argument.
import type { EndpointLimits } from '@convoke/wire/server'
import { serve } from './server-fixture.ts'

const served = await serve({ limits: JSON.parse(process.argv[2] ?? '{}') as Partial<EndpointLimits> })
process.stdout.write(`${served.port}\n`)
process.stdin.on('end', () => void served.endpoint.close({ drainMs: 10 })).resume()
