import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { createSdk1Server } from './sdk1-server.ts'

await createSdk1Server().connect(new StdioServerTransport())
process.stdin.once('end', () => process.exit(0))
