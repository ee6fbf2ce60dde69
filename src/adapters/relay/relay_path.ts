/**
 * The path of a relay. It differs from all others of the API, so that a proxy can route it to the relay's own
 * port.
 */
export const RELAY_PATH = '/k8s/relay/streams';
