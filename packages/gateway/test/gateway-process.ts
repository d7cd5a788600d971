// A gateway in a process of its own, for what is seen only from outside. The last argument is JSON: { servers, options?, host? }. Prints `READY PORT`.
import v8 from 'node:v8'
import { type GatewayOptions, gatewayHandlers, serveGateway } from '@convoke/gateway'
import { createHost, type ServerDefinitionInput } from '@convoke/host'
import { definitionsOf, type ServerEntry } from './entries.ts'

const {
  servers,
  options = {},
  overrides = {},
  flags = [],
} = JSON.parse(process.argv.at(-1) ?? '{}') as {
  servers: Record<string, ServerEntry>
  options?: GatewayOptions
  overrides?: Record<string, Partial<ServerDefinitionInput>>
  flags?: string[]
}

for (const flag of flags) v8.setFlagsFromString(flag)
const definitions = definitionsOf(servers, overrides)
const host = await createHost({ definitions, handlers: gatewayHandlers, writeBurst: 'turn', http: 'undici' })
const gateway = await serveGateway(host, options)
if (gateway.url === undefined) {
  await gateway.closed
  await host.close()
} else {
  process.stdout.write(`READY ${new URL(gateway.url).port}\n`)
  process.once('SIGTERM', () => {
    void gateway
      .close({ drainMs: 500 })
      .then(() => host.close())
      .then(() => process.exit(0))
  })
}
