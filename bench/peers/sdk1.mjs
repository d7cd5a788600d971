import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { openPerServer } from './per-server.mjs'

async function make(spec) {
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(
    spec.url === undefined
      ? new StdioClientTransport({ ...spec, stderr: 'ignore' })
      : new StreamableHTTPClientTransport(new URL(spec.url)),
  )
  return {
    async list() {
      let count = 0
      let cursor
      do {
        const page = await client.listTools(cursor === undefined ? undefined : { cursor })
        count += page.tools.length
        cursor = page.nextCursor
      } while (cursor !== undefined)
      return count
    },
    call: async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text,
    close: () => client.close(),
  }
}

export const open = (servers, marks) => openPerServer(servers, marks, make)
