import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { openPerServer } from './per-server.mjs'

async function make(spec) {
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(
    spec.url === undefined
      ? new StdioClientTransport({ ...spec, stderr: 'ignore' })
      : new StreamableHTTPClientTransport(new URL(spec.url)),
  )
  return {
    list: async () => (await client.listTools()).tools.length,
    call: async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text,
    close: () => client.close(),
  }
}

export const open = (servers, marks) => openPerServer(servers, marks, make)
