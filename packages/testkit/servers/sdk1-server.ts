// A small server on SDK v1 (2025-11-25 and older), as most servers in the field are.
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'

/** A fresh instance, for one connection or one request. */
export function createSdk1Server(): McpServer {
  const server = new McpServer(
    { name: 'sdk1', version: '1.0.0' },
    { capabilities: { logging: {} }, instructions: 'A small server on SDK v1.' },
  )
  server.registerTool(
    'echo',
    { description: 'Gives the text back', inputSchema: { text: z.string() } },
    async ({ text }) => ({ content: [{ type: 'text', text }] }),
  )
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers',
      inputSchema: { a: z.number(), b: z.number() },
      outputSchema: { sum: z.number() },
    },
    async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }], structuredContent: { sum: a + b } }),
  )
  server.registerTool('ask', { description: 'Asks the person for a name' }, async () => {
    const { action, content } = await server.server.elicitInput({
      message: 'What is your name?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    })
    return { content: [{ type: 'text', text: `${action}: ${JSON.stringify(content ?? {})}` }] }
  })
  server.registerTool(
    'steps',
    { description: 'Tells its progress `count` times', inputSchema: { count: z.number().int().max(1_000) } },
    async ({ count }, { _meta, sendNotification }) => {
      const progressToken = _meta?.progressToken
      for (let progress = 1; progress <= count && progressToken !== undefined; progress++) {
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress, total: count },
        })
      }
      return { content: [{ type: 'text', text: `${count} steps` }] }
    },
  )
  server.registerResource('one', 'sdk1://one', { mimeType: 'text/plain' }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'The first' }],
  }))
  server.registerResource(
    'item',
    new ResourceTemplate('sdk1://item/{id}', { list: undefined }),
    {},
    async (uri, { id }) => ({
      contents: [{ uri: uri.href, text: `Item ${String(id)}` }],
    }),
  )
  server.registerPrompt('greet', { argsSchema: { who: z.string() } }, ({ who }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${who}` } }],
  }))
  return server
}
