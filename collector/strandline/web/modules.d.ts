// The bundled libraries carry no types.
declare module "preact";
declare module "preact/hooks";
declare module "htm";
declare module "d3-selection";
declare module "d3-zoom";
