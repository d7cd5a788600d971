/**
 * The model loop is not here yet. Until it is, bind a host and hand its tools to your own loop.
 *
 * @see {@link https://www.npmjs.com/package/@convoke/host}
 */
export const agentStatus: 'in-preparation' = 'in-preparation'
