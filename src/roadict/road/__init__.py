"""ROAD: one loop, a formulation as data, and engines that carry out an iteration."""
