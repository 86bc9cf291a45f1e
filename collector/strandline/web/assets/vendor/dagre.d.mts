// The bundled library carries no types.
export const Graph: any;
export const layout: any;
